/** Keeps a number of calls in flight on the lanes of some clients, and times them. */
import type { Client, Lane } from './client.ts';
import type { Workload } from './workload.ts';

export interface DriveOptions {
  readonly clients: readonly Client[];
  readonly workload: Workload;
  /** No further call is begun after either. */
  readonly forMs: number;
  readonly maxCalls: number;
  /** Called right before the first call, and right after the last answer. */
  readonly onEdge?: () => void;
}

export interface Driven {
  readonly calls: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A call that is not answered by then counts as lost; the slowest bridge takes seconds for its largest answer. */
const MAX_CALL_MS = 30_000;

export async function drive(options: DriveOptions): Promise<Driven> {
  const { clients, workload } = options;
  const lanes: OwnedLane[] = [];
  try {
    // Every client has a lane, so that none is left out, also where fewer calls are in flight than there are clients.
    for (let index = 0; index < Math.max(workload.inFlight, clients.length); index += 1) {
      const client = clients[index % clients.length];
      if (client !== undefined) lanes.push({ lane: await client.openLane(workload), client });
    }
    return await new Promise((resolve, reject) => new Run(options, lanes, { resolve, reject }).start());
  } finally {
    for (const { lane } of lanes) lane.close();
  }
}

interface OwnedLane {
  readonly lane: Lane;
  readonly client: Client;
}

interface Outcome {
  resolve(driven: Driven): void;
  reject(error: Error): void;
}

class Run {
  readonly #options: DriveOptions;
  readonly #outcome: Outcome;
  /** The lane that waited longest is next, so that all clients have their turn. */
  readonly #idle: OwnedLane[];
  readonly #latencies: number[] = [];
  #begun = 0;
  #startedAt = 0;
  #lastAnswerAt = 0;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: DriveOptions, lanes: readonly OwnedLane[], outcome: Outcome) {
    this.#options = options;
    this.#outcome = outcome;
    this.#idle = [...lanes];
  }

  start(): void {
    this.#options.onEdge?.();
    this.#startedAt = performance.now();
    this.#lastAnswerAt = this.#startedAt;
    this.#watch = setInterval(() => {
      if (performance.now() - this.#lastAnswerAt > MAX_CALL_MS) this.#fail(new Error('a call was not answered'));
    }, 1000);
    for (let index = 0; index < this.#options.workload.inFlight; index += 1) this.#next();
  }

  #next(): void {
    const { forMs, maxCalls } = this.#options;
    const now = performance.now();
    if (this.#begun >= maxCalls || (this.#begun > 0 && now - this.#startedAt >= forMs)) {
      if (this.#latencies.length === this.#begun) this.#finish();
      return;
    }
    const owned = this.#idle.shift();
    if (owned === undefined) return;
    this.#begun += 1;
    const { lane, client } = owned;
    lane.call.renumber(client.numbers.next());
    lane.run(
      () => {
        this.#lastAnswerAt = performance.now();
        this.#latencies.push(this.#lastAnswerAt - now);
        this.#idle.push(owned);
        this.#next();
      },
      (error) => this.#fail(error),
    );
  }

  #finish(): void {
    clearInterval(this.#watch);
    this.#options.onEdge?.();
    const sorted = Float64Array.from(this.#latencies).sort();
    const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    this.#outcome.resolve({
      calls: this.#begun,
      seconds: (this.#lastAnswerAt - this.#startedAt) / 1000,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
    });
  }

  #fail(error: Error): void {
    clearInterval(this.#watch);
    this.#outcome.reject(error);
  }
}
