/**
 * npm run bench:cluster: measures what calls, sessions and rest cost where several replicas share a Redis. A full run writes
 * its figures to bench/last-cluster-run.json, from which `npm run docs` makes the section about capacity. Needs redis-server.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readVersion, rootPath } from '../bridges/programs.ts';
import { renderClusterResults } from '../report/capacity.ts';
import { type ClusterRun, describeClusterRun } from '../report/cluster-run.ts';
import { renderRun } from '../report/run-text.ts';
import { type CallEffort, MEASURED_CALLS, measureCalls } from './calls.ts';
import { type HoldingEffort, measureRest, measureSessions } from './holdings.ts';
import { MEASURED_PAIRS, measurePairs, type PairEffort } from './pairs.ts';
import { closeConnections } from './posts.ts';
import { RedisMeter } from './redis-counts.ts';
import { Bed } from './replicas.ts';

const LAST_RUN = join(rootPath, 'bench/last-cluster-run.json');
const USAGE = `Usage: npm run bench:cluster -- [--quick]
  --quick   only check that every answer is right, in half a minute, without figures`;

type Effort = CallEffort & PairEffort & HoldingEffort;

const FULL: Effort = {
  sets: 3,
  rounds: 4,
  // Replicas that have served for a few seconds have compiled what they use often.
  warmRounds: 8,
  callsOfARound: 1280,
  singleCalls: 150,
  pairSets: 9,
  slices: 6,
  sliceMs: 1000,
  warmMs: 3000,
  leases: 4,
  sessions: 300,
  steps: 3,
};
const QUICK: Effort = {
  sets: 1,
  rounds: 1,
  warmRounds: 0,
  callsOfARound: 128,
  singleCalls: 5,
  pairSets: 1,
  slices: 1,
  sliceMs: 50,
  warmMs: 0,
  leases: 1,
  sessions: 20,
  steps: 1,
};

function parseEffort(argv: readonly string[]): Effort | undefined {
  try {
    const { values } = parseArgs({ args: [...argv], options: { quick: { type: 'boolean', default: false } } });
    return values.quick ? QUICK : FULL;
  } catch {
    return undefined;
  }
}

const effort = parseEffort(process.argv.slice(2));
if (effort === undefined) {
  console.error(USAGE);
  process.exit(2);
}
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

const startedAt = performance.now();
const bed = await Bed.start();
const meter = new RedisMeter(bed.redis.url);
const parts = { bed, meter };

async function step<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  const stepStartedAt = performance.now();
  process.stderr.write(`${name} …`);
  const result = await run();
  process.stderr.write(` ${((performance.now() - stepStartedAt) / 1000).toFixed(1)} s\n`);
  return result;
}

const calls: ClusterRun['calls'][number][] = [];
for (const measured of MEASURED_CALLS) {
  calls.push(await step(`calls: ${measured.kind}`, () => measureCalls(measured, effort, parts)));
}
const pairs: ClusterRun['pairs'][number][] = [];
for (const measured of MEASURED_PAIRS) {
  pairs.push(await step(`pairs: ${measured.kind}`, () => measurePairs(measured, effort, bed)));
}
const rest = await step('at rest', () => measureRest(effort.leases, parts));
const sessions = await step('sessions', () => measureSessions(effort, parts));
const versions = { Node: process.version, 'mcp-portage': readVersion(''), Redis: await meter.version() };

meter.close();
closeConnections();
await bed.close();

if (effort === FULL) {
  const { sets, callsOfARound } = effort;
  const rounds = sets * effort.rounds;
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const run = describeClusterRun({ seconds, rounds, callsOfARound, calls, pairs, rest, sessions }, versions);
  writeFileSync(LAST_RUN, renderRun(run));
  console.log(renderClusterResults(run));
}
console.log(`${calls.length + pairs.length + 2} passed, 0 failed`);
