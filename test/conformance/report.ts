import { type Comparison, covers, type ExpectedDifference } from './compare.ts';
import type { Score } from './suite.ts';

const SCENARIO_WIDTH = 38;
const SCORE_WIDTH = 10;

/** One line a scenario, one column a score. */
export function printTable(scores: Readonly<Record<string, Score>>): void {
  const scenarios = new Set(Object.values(scores).flatMap((score) => [...score.keys()].map(scenarioOf)));
  const rows = [...scenarios]
    .sort()
    .map((scenario) => [scenario, ...Object.values(scores).map((score) => summarize(score, scenario))]);
  const total = ['total', ...Object.values(scores).map((score) => summarize(score))];
  for (const row of [['scenario', ...Object.keys(scores)], ...rows, total]) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(column === 0 ? SCENARIO_WIDTH : SCORE_WIDTH))
        .join('')
        .trimEnd(),
    );
  }
}

const scenarioOf = (check: string): string => check.split(' / ')[0] ?? check;

/** Passed of scored, of one scenario or of all: what the suite calls the score leaves INFO and SKIPPED out. */
function summarize(score: Score, scenario?: string): string {
  const outcomes = [...score].filter(([check]) => scenario === undefined || scenarioOf(check) === scenario);
  const count = (...statuses: string[]) => outcomes.filter(([, { status }]) => statuses.includes(status)).length;
  return `${count('SUCCESS')}/${count('SUCCESS', 'FAILURE', 'WARNING')}`;
}

/** Prints what differs as expected, and returns a line for each check that fails the run. */
export function printDifferences(
  target: string,
  { lost, expected, stale }: Comparison,
  allowed: readonly ExpectedDifference[],
): string[] {
  for (const { check, direct: before, bridged: after } of expected) {
    console.log(`\n${target}: ${check} has to be ${before} and is ${after} through the bridge, as expected:`);
    console.log(`  ${allowed.find((entry) => covers(entry, check))?.reason}`);
  }
  return [
    ...lost.map(
      ({ check, direct: before, bridged: after, explanation }) =>
        `${target}: ${check} has to be ${before} and is ${after} through the bridge. ${explanation ?? ''}`,
    ),
    ...stale.map(({ check }) => `${target}: ${check} passes; its entry in expected-differences.json has to go.`),
  ];
}
