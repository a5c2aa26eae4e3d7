/**
 * `npm run soak -- [--minutes N] [--sessions N] [--own N]`: two bridges from the build under load, with every answer
 * checked. Exits with 1 if an answer is lost or somebody else's, if memory, handles or processes grow, or if anything is
 * left at the end. Reads /proc, so it runs on Linux only.
 */
import { parseArgs } from 'node:util';
import { Load } from './load.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, sessions: { type: 'string' }, own: { type: 'string' } },
});
const minutes = Number(values.minutes ?? 10);
const sessions = Number(values.sessions ?? 1000);
const own = Number(values.own ?? 100);
if (!(minutes > 0 && sessions > 0 && own > 0)) throw new Error('--minutes, --sessions and --own must be positive');

const startedMs = Date.now();
const endMs = startedMs + minutes * 60_000;
const loads = [
  await Load.start({
    title: `${sessions} sessions on a shared child`,
    isolation: 'shared',
    residents: sessions,
    visitorsPerSecond: 10,
    modernPerSecond: 10,
    idleChildren: 2,
  }),
  await Load.start({
    title: `${own} sessions with children of their own`,
    isolation: 'session',
    residents: own,
    visitorsPerSecond: 0.5,
    modernPerSecond: 2,
    idleChildren: 1,
  }),
];
const reports = await Promise.all(loads.map((load) => load.run(endMs)));
for (const line of reports.flatMap(({ lines }) => lines)) console.log(line);
const failures = reports.flatMap(({ failures }) => failures);
for (const failure of failures) console.log(`FAILED ${failure}`);
console.log(`${Math.round((Date.now() - startedMs) / 1000)} s, ${failures.length === 0 ? 'all well' : 'not well'}`);
process.exitCode = failures.length === 0 ? 0 : 1;
