/**
 * The suite as a server: the client of the same era directly over HTTP, and clients of either era over stdio through
 * `mcp-portage connect`.
 */
import { join } from 'node:path';
import type { RoleScores } from './compare.ts';
import type { Programs } from './programs.ts';
import {
  type CheckOutcome,
  listClientScenarios,
  type RoleRun,
  type Score,
  type SuiteRevision,
  scoreClient,
} from './suite.ts';
import type { SuiteCommand } from './suite-command.ts';

/** A role of its own; see authorization-role.ts. */
const LEFT_OUT = /^auth\//;
/** Measures milliseconds, so a busy machine may need another try. */
const TIMED = 'sse-retry';
const TIMED_TRIES = 3;

type Era = 'legacy' | 'modern';
export const ERA_OF: Readonly<Record<SuiteRevision, Era>> = { '2025-11-25': 'legacy', '2026-07-28': 'modern' };
export const OTHER_ERA: Readonly<Record<Era, Era>> = { legacy: 'modern', modern: 'legacy' };

export async function scoreClientRole(run: RoleRun): Promise<RoleScores> {
  const { suite, revision, results } = run;
  const scenarios = (await listClientScenarios(suite, revision)).filter((scenario) => !LEFT_OUT.test(scenario));
  const era = ERA_OF[revision];
  const scoreAs = async (...mode: ClientMode): Promise<Score> => {
    const folder = join(results, [revision, 'client', ...mode].join('-'));
    return new Map(await scoreScenarios(run, { scenarios, mode, folder }));
  };
  const [direct, connect, other] = await Promise.all([
    scoreAs(era, 'direct'),
    scoreAs(era),
    // Told the era: the suite's servers take requests of both, and a client of either would be left in its own.
    scoreAs(OTHER_ERA[era], '--protocol', era),
  ]);
  return {
    title: `${revision}, client role`,
    baseline: 'direct',
    direct,
    bridged: { connect, [`${OTHER_ERA[era]} client`]: other },
  };
}

/** Era of the client, then `direct` or options of `connect`. */
export type ClientMode = readonly [era: Era, ...way: string[]];

export interface ScenariosRun {
  readonly scenarios: readonly string[];
  readonly mode: ClientMode;
  /** For what the suite writes about them. */
  readonly folder: string;
}

/** In the order of the scenarios, whichever is done first. */
export async function scoreScenarios(
  { suite, programs, revision, turns }: RoleRun,
  { scenarios, mode, folder }: ScenariosRun,
): Promise<readonly (readonly [check: string, outcome: CheckOutcome])[]> {
  const scores = scenarios.map((scenario) =>
    turns.run(() => scoreScenario({ suite, programs, revision, scenario, mode, folder })),
  );
  return (await Promise.all(scores)).flatMap((score) => [...score]);
}

interface ScenarioRun {
  readonly suite: SuiteCommand;
  readonly programs: Programs;
  readonly revision: SuiteRevision;
  readonly scenario: string;
  readonly mode: ClientMode;
  readonly folder: string;
}

async function scoreScenario({ suite, programs, revision, scenario, mode, folder }: ScenarioRun): Promise<Score> {
  const words = [process.execPath, programs.client, ...mode];
  const command = words.map((word) => JSON.stringify(word)).join(' ');
  for (let attempt = 1; ; attempt += 1) {
    const outputDir = join(folder, `${scenario}-${attempt}`);
    const score = await scoreClient({ suite, revision, command, scenario, outputDir });
    const isFine = [...score.values()].every(({ status }) => status !== 'FAILURE' && status !== 'WARNING');
    if (isFine || scenario !== TIMED || attempt === TIMED_TRIES) return score;
  }
}
