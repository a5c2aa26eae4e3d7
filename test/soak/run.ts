/**
 * `npm run soak -- [--minutes N] [--sessions N] [--own N] [--pipes N]`: two bridges from the build under load, and stdio
 * endpoints beside them, with every answer checked. Exits with 1 if an answer is lost or somebody else's, if memory,
 * handles or processes grow, or if anything is left at the end. Reads /proc, so it runs on Linux only.
 */
import { parseArgs } from 'node:util';
import { Load } from './load.ts';
import { PipeLoad } from './pipe-load.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    sessions: { type: 'string' },
    own: { type: 'string' },
    pipes: { type: 'string' },
  },
});
const minutes = Number(values.minutes ?? 10);
const sessions = Number(values.sessions ?? 1000);
const own = Number(values.own ?? 100);
const pipes = Number(values.pipes ?? 2);
const isPositive = [minutes, sessions, own, pipes].every((value) => value > 0);
if (!isPositive) throw new Error('--minutes, --sessions, --own and --pipes must be positive');

const startedMs = Date.now();
const endMs = startedMs + minutes * 60_000;
const loads = [
  await Load.start({
    title: `${sessions} sessions on a shared child`,
    isolation: 'shared',
    residents: sessions,
    streamResidents: Math.ceil(sessions / 20),
    carriedResidents: Math.ceil(sessions / 20),
    visitorsPerSecond: 10,
    modernPerSecond: 10,
    idleChildren: 2,
  }),
  await Load.start({
    title: `${own} sessions with children of their own`,
    isolation: 'session',
    residents: own,
    streamResidents: Math.ceil(own / 10),
    carriedResidents: Math.ceil(own / 10),
    visitorsPerSecond: 0.5,
    modernPerSecond: 2,
    idleChildren: 1,
  }),
  await PipeLoad.start(pipes),
];
const reports = await Promise.all(loads.map((load) => load.run(endMs)));
for (const line of reports.flatMap(({ lines }) => lines)) console.log(line);
const failures = reports.flatMap(({ failures }) => failures);
for (const failure of failures) console.log(`FAILED ${failure}`);
console.log(`${Math.round((Date.now() - startedMs) / 1000)} s, ${failures.length === 0 ? 'all well' : 'not well'}`);
process.exitCode = failures.length === 0 ? 0 : 1;
