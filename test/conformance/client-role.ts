/**
 * The suite as a server: the client of the same era directly over HTTP, and clients of either era over stdio through
 * `mcp-portage connect`.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RoleScores } from './compare.ts';
import { listClientScenarios, type RoleRun, type Score, type SuiteRevision, scoreClient } from './suite.ts';
import type { SuiteCommand } from './suite-command.ts';

const CLIENT = fileURLToPath(new URL('./client.ts', import.meta.url));
/** A role of its own; see authorization-role.ts. */
const LEFT_OUT = /^auth\//;
/** Measures milliseconds, so a busy machine may need another try. */
const TIMED = 'sse-retry';
const TIMED_TRIES = 3;

type Era = 'legacy' | 'modern';
export const ERA_OF: Readonly<Record<SuiteRevision, Era>> = { '2025-11-25': 'legacy', '2026-07-28': 'modern' };
export const OTHER_ERA: Readonly<Record<Era, Era>> = { legacy: 'modern', modern: 'legacy' };

export async function scoreClientRole({ suite, revision, results }: RoleRun): Promise<RoleScores> {
  const scenarios = (await listClientScenarios(suite, revision)).filter((scenario) => !LEFT_OUT.test(scenario));
  const era = ERA_OF[revision];
  const scoreAs = async (...mode: ClientMode): Promise<Score> => {
    const scores: Score[] = [];
    const folder = join(results, [revision, 'client', ...mode].join('-'));
    for (const scenario of scenarios) scores.push(await scoreScenario({ suite, revision, scenario, mode, folder }));
    return new Map(scores.flatMap((score) => [...score]));
  };
  return {
    title: `${revision}, client role`,
    baseline: 'direct',
    direct: await scoreAs(era, 'direct'),
    bridged: {
      connect: await scoreAs(era),
      // Told the era: the suite's servers take requests of both, and a client of either would be left in its own.
      [`${OTHER_ERA[era]} client`]: await scoreAs(OTHER_ERA[era], '--protocol', era),
    },
  };
}

/** Era of the client, then `direct` or options of `connect`. */
export type ClientMode = readonly [era: Era, ...way: string[]];

export interface ScenarioRun {
  readonly suite: SuiteCommand;
  readonly revision: SuiteRevision;
  readonly scenario: string;
  readonly mode: ClientMode;
  readonly folder: string;
}

export async function scoreScenario({ suite, revision, scenario, mode, folder }: ScenarioRun): Promise<Score> {
  const words = [process.execPath, `--import=${import.meta.resolve('tsx')}`, CLIENT, ...mode];
  const command = words.map((word) => JSON.stringify(word)).join(' ');
  for (let attempt = 1; ; attempt += 1) {
    const outputDir = join(folder, `${scenario}-${attempt}`);
    const score = await scoreClient({ suite, revision, command, scenario, outputDir });
    const isFine = [...score.values()].every(({ status }) => status !== 'FAILURE' && status !== 'WARNING');
    if (isFine || scenario !== TIMED || attempt === TIMED_TRIES) return score;
  }
}
