/** All bridges of one case, alive side by side and measured in turn, round by round. */
import type { Endpoint } from '../bridges/endpoint.ts';
import { type Case, type Entrant, type HttpServer, whyMissing } from '../cases.ts';
import type { Client } from '../load/client.ts';
import { drive } from '../load/drive.ts';
import { Numbers } from '../load/numbers.ts';
import { SMALL_32, type Workload } from '../load/workload.ts';
import type { Effort } from './effort.ts';
import { readCpuNanos } from './proc.ts';
import { hasExited, stop } from './processes.ts';
import type { Records } from './records.ts';

export interface ContestOptions {
  readonly contest: Case;
  readonly server: HttpServer;
  readonly effort: Effort;
  readonly records: Records;
}

/** After this many failed measurements a bridge is not started again in this case. */
const MAX_FAILURES = 3;

export async function runContest({ contest, server, effort, records }: ContestOptions): Promise<void> {
  for (const absent of contest.absent) {
    records.addGap({ case: contest.name, workload: '', contender: absent.name, kind: 'absent', reason: absent.reason });
  }
  const contestants: Contestant[] = [];
  try {
    for (const entrant of contest.entrants) {
      const contestant = new Contestant({ entrant, contest, server, effort, records });
      contestants.push(contestant);
      await contestant.warmUp();
    }
    for (let round = 0; round < effort.rounds; round += 1) {
      for (const workload of contest.workloads) {
        // Another one is first in each round.
        for (const index of contestants.keys()) {
          await contestants[(index + round) % contestants.length]?.measure(workload);
        }
      }
    }
  } finally {
    await Promise.all(contestants.map((contestant) => contestant.stop()));
  }
}

interface ContestantOptions extends ContestOptions {
  readonly entrant: Entrant;
}

class Contestant {
  readonly #options: ContestantOptions;
  #endpoint: Endpoint | undefined;
  #clients: Client[] = [];
  readonly #failed = new Map<Workload, number>();
  #isOut = false;

  constructor(options: ContestantOptions) {
    this.#options = options;
    const { contest, entrant, effort, records } = options;
    const reason = whyMissing(entrant.name, effort);
    if (reason === undefined) return;
    this.#isOut = true;
    records.addGap({ case: contest.name, workload: '', contender: entrant.name, kind: 'absent', reason });
  }

  async warmUp(): Promise<void> {
    const { contest, effort } = this.#options;
    const [workload = SMALL_32] = contest.workloads;
    if (this.#isOut || effort.warmUpCalls === 0) return;
    try {
      const clients = await this.#open();
      await drive({ clients, workload, forMs: effort.maxWarmUpMs, maxCalls: effort.warmUpCalls });
    } catch (error) {
      await this.#giveUp(workload, error);
    }
  }

  async measure(workload: Workload): Promise<void> {
    const { contest, entrant, effort, records } = this.#options;
    if (this.#isOut || (this.#failed.get(workload) ?? 0) >= MAX_FAILURES) return;
    try {
      const clients = await this.#open();
      const pid = this.#endpoint?.started.pid ?? 0;
      const edges: (number | undefined)[] = [];
      const driven = await drive({
        clients,
        workload,
        forMs: effort.sliceMs,
        maxCalls: effort.maxCalls,
        onEdge: () => edges.push(readCpuNanos(pid)),
      });
      const [before, after] = edges;
      const nanos = before === undefined || after === undefined ? undefined : after - before;
      records.add(
        { case: contest.name, workload: workload.name, contender: entrant.name },
        {
          // The server's own work is not what a bridge costs.
          cpu: nanos === undefined || entrant.name === 'direct' ? undefined : nanos / 1000 / driven.calls,
          callsPerSecond: driven.calls / driven.seconds,
          p50Ms: driven.p50Ms,
          p99Ms: driven.p99Ms,
        },
      );
    } catch (error) {
      await this.#giveUp(workload, error);
    }
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) await client.close().catch(() => undefined);
    this.#clients = [];
    // The server on HTTP serves the other bridges, too.
    if (this.#endpoint !== undefined && this.#endpoint.started !== this.#options.server.started)
      await stop(this.#endpoint.started);
    this.#endpoint = undefined;
  }

  /** Starts the bridge where it does not run: at first, and after it failed. */
  async #open(): Promise<readonly Client[]> {
    if (this.#endpoint !== undefined && !hasExited(this.#endpoint.started)) return this.#clients;
    const { contest, entrant, server } = this.#options;
    this.#clients = [];
    this.#endpoint = await entrant.start(server);
    const common = new Numbers();
    const answersIn = entrant.answersIn ?? contest.era;
    const count = Math.min(contest.clients, entrant.maxClients ?? contest.clients);
    for (let index = 0; index < count; index += 1) {
      const numbers = entrant.ids === 'own' ? new Numbers() : common;
      this.#clients.push(
        await this.#endpoint.openClient({ name: `client${index}`, era: contest.era, answersIn, numbers }),
      );
    }
    return this.#clients;
  }

  async #giveUp(workload: Workload, error: unknown): Promise<void> {
    const { contest, entrant, records } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    this.#failed.set(workload, (this.#failed.get(workload) ?? 0) + 1);
    records.addGap({ case: contest.name, workload: workload.name, contender: entrant.name, kind: 'failed', reason });
    await this.stop();
  }
}
