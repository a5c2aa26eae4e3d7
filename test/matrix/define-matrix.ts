import type { TestFn } from 'ava';
import { Cell } from './cell.ts';
import type { ClientName } from './clients.ts';
import { findLimit } from './limits.ts';
import type { Scenario } from './scenario.ts';
import { BETWEEN_CALLS } from './scenarios/between-calls.ts';
import { CALLS } from './scenarios/calls.ts';
import { DURING_CALLS } from './scenarios/during-calls.ts';
import { LISTS } from './scenarios/lists.ts';
import { QUESTIONS } from './scenarios/questions.ts';
import { SHUTDOWN } from './scenarios/shutdown.ts';
import { TWO_CLIENTS } from './scenarios/two-clients.ts';
import { SERVERS, type ServerName } from './servers.ts';

/** In this order, as the last one ends the cell. */
const SCENARIOS: readonly Scenario[] = [
  ...CALLS,
  ...LISTS,
  ...DURING_CALLS,
  ...QUESTIONS,
  ...BETWEEN_CALLS,
  ...TWO_CLIENTS,
  ...SHUTDOWN,
];

/**
 * Registers every scenario for this client with every server.
 *
 * Another client is an entry in clients.ts with an implementation of MatrixClient, and a test file of one line; another
 * server is an entry in servers.ts with a program that offers what servers/legacy-tools.js does. What a pair cannot do
 * is an entry in limits.ts; a need that no scenario has named so far is one more Feature there.
 */
export function testMatrixOf(test: TestFn, client: ClientName): void {
  for (const server of Object.keys(SERVERS) as ServerName[]) {
    const cell = new Cell(client, server);
    for (const scenario of SCENARIOS) register(test, scenario, { cell, client, server });
    test.after.always(`end ${cell.title}`, () => cell.stop());
  }
}

interface Place {
  readonly cell: Cell;
  readonly client: ClientName;
  readonly server: ServerName;
}

function register(test: TestFn, scenario: Scenario, { cell, client, server }: Place): void {
  const { needs = [], without } = scenario;
  if (without !== undefined && findLimit(client, server, [without]) === undefined) return;
  const title = `${cell.title}: ${scenario.title}`;
  const limit = findLimit(client, server, needs);
  if (limit !== undefined) return test.skip(`${title} (cannot be: ${limit.reason})`, (t) => t.fail());
  test.serial(title, (t) => scenario.run(t, cell));
}
