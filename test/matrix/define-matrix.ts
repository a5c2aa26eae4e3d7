import type { TestFn } from 'ava';
import { WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { Cell } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName } from './clients.ts';
import { findHindrance } from './limits.ts';
import type { Scenario } from './scenario.ts';
import { LARGE_PAYLOADS } from './scenarios/calls.ts';
import { TWO_CLIENTS } from './scenarios/two-clients.ts';
import { ESSENTIALS, MEETING, SCENARIOS } from './scenarios.ts';
import { OTHER_CARRIERS, SERVER_NAMES, SERVERS, type ServerName } from './servers.ts';

/**
 * Registers every scenario for this client with every server.
 *
 * Another client is an entry in clients.ts with an implementation of MatrixClient, and a test file of one line; another
 * server is an entry in servers.ts with a program that offers what servers/tools.js does. What an era cannot do is in
 * features.ts, what a server cannot do in limits.ts; docs/reference/compatibility.md is made of both.
 */
export function testMatrixOf(test: TestFn, client: ClientName): void {
  for (const server of SERVER_NAMES) testCell(test, new Cell(client, server), scenariosOf(client, server));
}

function scenariosOf(client: ClientName, server: ServerName): readonly Scenario[] {
  if (!areTriedInFull(client, server)) return areTriedElsewhere(client, server) ? MEETING : ESSENTIALS;
  return SCENARIOS.filter((scenario) => {
    if (LARGE_PAYLOADS.includes(scenario)) return areBothOneOfEach(client, server) || haveOneCarrier(client, server);
    return !TWO_CLIENTS.includes(scenario) || couldMixUpClients(client, server);
  });
}

/**
 * Where MCP's own transports meet; a carrier beside them with itself, and with Streamable HTTP. A client that finds out the era is
 * one of those that know it from then on, so it is tried with its own transport in each era.
 */
function areTriedInFull(client: ClientName, server: ServerName): boolean {
  if (client === 'autoStdio' || client === 'autoHttp') return haveOneCarrier(client, server) && isOneOfEach(server);
  if (haveOneCarrier(client, server)) return true;
  // A carrier knows nothing of eras, nor of what is carried on the other side.
  if (isOther(SERVERS[server].over)) return client === 'streamable' || client === 'modernHttp';
  return !isOther(CLIENTS[client].over) || server === 'stateful';
}

const isOther = (over: ClientKind['over']): boolean => OTHER_CARRIERS.includes(over);

/**
 * Where a carrier beside MCP's own meets another one, or a variant of a transport, or a client that finds out the era: each of the two
 * is tried elsewhere, and neither knows of the other, so what is left is that they meet.
 */
const areTriedElsewhere = (client: ClientName, server: ServerName): boolean => {
  if (isOther(CLIENTS[client].over)) return isOther(SERVERS[server].over) || !isMain(server);
  return isOther(SERVERS[server].over) && !isMain(client);
};

/** MCP's own transports in each era, without their variants. */
const isOneOfEach = (name: string): boolean =>
  ['stdio', 'streamable', 'stateful', 'modernStdio', 'modernHttp'].includes(name);

/** Each of MCP's own transports, without its variants. */
const isMain = (name: string): boolean => isOneOfEach(name) || name === 'httpSse';

/** Every pair of eras, over pipes and over HTTP. */
const areBothOneOfEach = (client: ClientName, server: ServerName): boolean =>
  isOneOfEach(client) && isOneOfEach(server);

const haveOneCarrier = (client: ClientName, server: ServerName): boolean =>
  CLIENTS[client].over === SERVERS[server].over;

/** Clients on stdio have a bridge each. All they share is a server at a URL, which one of each era shows. */
const couldMixUpClients = (client: ClientName, server: ServerName): boolean =>
  CLIENTS[client].over !== 'stdio' || server === 'stateful' || server === 'modernHttp';

/** Why this machine cannot try a pair; undefined: it can. */
function whyNotHere({ client, server }: Cell): string | undefined {
  return CLIENTS[client].over === 'mqtt' || SERVERS[server].over === 'mqtt' ? WHY_NO_MOSQUITTO : undefined;
}

export function testCell(test: TestFn, cell: Cell, scenarios: readonly Scenario[]): void {
  const why = whyNotHere(cell);
  if (why !== undefined) return test.skip(`${cell.title} (not here: ${why})`, (t) => t.fail());
  for (const scenario of scenarios) register(test, scenario, cell);
  test.after.always(`end ${cell.title}`, () => cell.stop());
}

function register(test: TestFn, { title: behavior, needs, without, run }: Scenario, cell: Cell): void {
  const { client, server } = cell;
  // Where one side does not even try there is nothing to see.
  if (without !== undefined && !isTriedInVain(findHindrance(client, server, [without])?.kind)) return;
  const title = `${cell.title}: ${behavior}`;
  const hindrance = findHindrance(client, server, needs);
  // The title says why this pair cannot do it.
  if (hindrance !== undefined) return test.skip(`${title} (cannot be: ${hindrance.why})`, (t) => t.fail());
  test.serial(title, (t) => run(t, cell));
}

const isTriedInVain = (kind: string | undefined): boolean => kind === 'impossible' || kind === 'limited';
