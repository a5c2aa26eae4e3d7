/** The whole benchmark as named steps, for one run and one bench server on HTTP. */
import { PEERS, type Peer } from '../bridges/programs.ts';
import { CASES, type Entrant, type HttpServer, whyMissing } from '../cases.ts';
import { GROWTH, IDLE, MANY_SESSIONS, OPENERS, STARTS } from '../extras.ts';
import { attempt } from './attempt.ts';
import { runContest } from './contest.ts';
import type { Effort } from './effort.ts';
import { measureInstalled } from './installed.ts';
import { measureGrowth, measureIdle, measureOpening, measureSessions, measureStart } from './lifetimes.ts';
import type { Records } from './records.ts';
import { measureStalls } from './stalls.ts';

export interface Step {
  readonly name: string;
  /** Whether it only yields figures and checks nothing that the others do not. */
  readonly kind: 'checks' | 'figures-only';
  run(server: HttpServer, effort: Effort, records: Records): Promise<void>;
}

/** A start takes up to two seconds; its spread is small. */
const STARTS_PER_ROUND = 2;

const CONTESTS: readonly Step[] = CASES.map((contest) => ({
  name: contest.name,
  kind: 'checks',
  run: (server, effort, records) => runContest({ contest, server, effort, records }),
}));

const FIGURES: readonly Step[] = [
  ...STARTS.map(
    ({ name, entrants }): Step => ({
      name,
      kind: 'figures-only',
      run: async (server, effort, records) => {
        for (let round = 0; round < effort.rounds * STARTS_PER_ROUND; round += 1) {
          for (const entrant of entrants) {
            await attempt(entrant, place(name, 'start', entrant), { effort, records }, () =>
              measureStart(entrant, server),
            );
          }
        }
      },
    }),
  ),
  {
    name: 'sessions',
    kind: 'figures-only',
    run: async (server, effort, records) => {
      for (let round = 0; round < effort.rounds; round += 1) {
        for (const opener of OPENERS) {
          const { entrant, workload } = opener;
          await attempt(entrant, place('sessions', workload, entrant), { effort, records }, () =>
            measureOpening(opener, server),
          );
        }
      }
    },
  },
  {
    name: 'memory',
    kind: 'figures-only',
    run: async (server, effort, records) => {
      for (let round = 0; round < effort.rounds; round += 1) {
        for (const entrant of IDLE) {
          await attempt(entrant, place('memory', 'idle', entrant), { effort, records }, () =>
            measureIdle(entrant, server),
          );
        }
      }
      for (const count of MANY_SESSIONS.counts) {
        for (const entrant of MANY_SESSIONS.entrants) {
          const at = place('memory', `sessions-${count}`, entrant);
          await attempt(entrant, at, { effort, records }, () => measureSessions(entrant, server, count, effort));
        }
      }
    },
  },
  {
    name: 'growth',
    kind: 'figures-only',
    run: async (server, effort, records) => {
      for (const entrant of GROWTH.entrants) {
        const at = place('growth', `calls-${GROWTH.calls}`, entrant);
        await attempt(entrant, at, { effort, records }, () => measureGrowth(entrant, server, GROWTH.calls));
      }
    },
  },
  {
    name: 'stalls',
    kind: 'figures-only',
    run: (_, effort, records) => measureStalls(effort, records),
  },
  {
    name: 'installed',
    kind: 'figures-only',
    run: async (_, effort, records) => {
      for (const name of ['mcp-portage', ...(Object.keys(PEERS) as Peer[])] as const) {
        const at = { case: 'installed', workload: 'package', contender: name };
        if (name !== 'mcp-portage' && whyMissing(name, effort) !== undefined) continue;
        try {
          records.add(at, measureInstalled(name));
        } catch (error) {
          records.addGap({ ...at, kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
        }
      }
    },
  },
];

export const STEPS: readonly Step[] = [...CONTESTS, ...FIGURES];

function place(name: string, workload: string, entrant: Entrant) {
  return { case: name, workload, contender: entrant.name };
}
