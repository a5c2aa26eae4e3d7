import type { Clock } from '../../deps.ts';
import type { ReplayLog, ReplayRun, StoredReplay } from '../../relay/sessions/session-storage.ts';
import { skipEvents } from '../../wire/sse-encode.ts';
import type { EventPosition } from './event-ids.ts';

/** Limits of the events that one session keeps for clients that lost a connection. */
export interface ReplayLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** Enough to survive a change of network. The latest run stays even if it alone exceeds `maxBytes`. */
export const REPLAY_LIMITS: ReplayLimits = { maxEvents: 1000, maxBytes: 5 * 1024 * 1024, maxAgeMs: 5 * 60_000 };

/** A run: consecutive events of one stream that were sent together. The position is that of the first event. */
interface StoredRun extends EventPosition {
  readonly count: number;
  /** Encoded for the wire. */
  readonly bytes: Buffer;
  readonly storedAtMs: number;
}

/**
 * The recent events of all streams of one session, oldest first. An event id holds its position, so resuming replays
 * exactly the stream that broke. [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export class ReplayBuffer {
  readonly #clock: Clock;
  readonly #limits: ReplayLimits;
  #runs: (StoredRun | undefined)[] = [];
  /** Index of the oldest run. Earlier entries are cut off in bulk, not one by one. */
  #first = 0;
  /** Events at the start of the oldest run that are no longer kept. Their bytes are freed with the run. */
  #spent = 0;
  #count = 0;
  #bytes = 0;

  /** Log that also stores the events outside this process; undefined: none. */
  readonly log: ReplayLog | undefined;

  constructor(clock: Clock, limits: ReplayLimits = REPLAY_LIMITS, log?: ReplayLog) {
    this.#clock = clock;
    this.#limits = limits;
    this.log = log;
  }

  /** Adds the stored events, before any event of this replica. */
  restore({ runs }: StoredReplay): void {
    for (const { stream, sequence, count, bytes } of runs) this.#keep({ stream, sequence }, bytes, count);
  }

  /** All runs that are kept, oldest first. */
  get runs(): readonly ReplayRun[] {
    return this.#runs.filter((run) => run !== undefined);
  }

  /** Returns the encoded events of a stream that are kept, oldest first. */
  runsOf(stream: number): readonly Buffer[] {
    return this.#runs.flatMap((run) => (run?.stream === stream ? run.bytes : []));
  }

  /** Returns the number of the newest known event of a stream; 0: none. */
  newestOf(stream: number): number {
    let newest = 0;
    for (const run of this.#runs) if (run?.stream === stream) newest = run.sequence + run.count - 1;
    return newest;
  }

  /** Largest size of a run. Runs are evicted as a whole, so each should be a small part of what is kept. */
  get maxRunBytes(): number {
    return Math.min(MAX_RUN_BYTES, this.#limits.maxBytes / 8);
  }

  /** Adds `count` consecutive events, the first of them at this position. */
  add({ stream, sequence }: EventPosition, bytes: Buffer, count = 1): void {
    this.#keep({ stream, sequence }, bytes, count);
    this.log?.add({ stream, sequence, count, bytes });
  }

  #keep({ stream, sequence }: EventPosition, bytes: Buffer, count: number): void {
    const nowMs = this.#clock.now();
    this.#runs.push({ stream, sequence, count, bytes, storedAtMs: nowMs });
    this.#count += count;
    this.#bytes += bytes.length;
    this.#evict(nowMs);
  }

  /**
   * Returns the encoded events that followed on the position's stream. Undefined: some of them are gone, and skipping
   * them would be a silent loss. `lastSequence` is the stream's newest event, if the caller knows it.
   */
  after(position: EventPosition, lastSequence: number | undefined): readonly Buffer[] | undefined {
    this.#evict(this.#clock.now());
    const missed: Buffer[] = [];
    let count = 0;
    let newest = 0;
    for (const [index, run] of this.#runs.entries()) {
      if (run?.stream !== position.stream) continue;
      newest = run.sequence + run.count - 1;
      const oldest = index === this.#first ? run.sequence + this.#spent : run.sequence;
      const next = Math.max(oldest, position.sequence + 1);
      if (next > newest) continue;
      count += newest + 1 - next;
      missed.push(run.bytes.subarray(skipEvents(run.bytes, next - run.sequence)));
    }
    const last = lastSequence ?? newest;
    return position.sequence <= last && count === last - position.sequence ? missed : undefined;
  }

  #evict(nowMs: number): void {
    const { maxEvents, maxBytes, maxAgeMs } = this.#limits;
    while (this.#runs.length - this.#first > 1) {
      const { count, bytes, storedAtMs } = this.#runs[this.#first] as StoredRun;
      const countWithout = this.#count - (count - this.#spent);
      if (countWithout < maxEvents && this.#bytes <= maxBytes && storedAtMs >= nowMs - maxAgeMs) break;
      this.#runs[this.#first] = undefined;
      this.#first += 1;
      this.#spent = 0;
      this.#count = countWithout;
      this.#bytes -= bytes.length;
      if (this.#first >= MAX_SPENT_ENTRIES) this.#cutOff();
    }
    const excess = Math.max(0, this.#count - maxEvents);
    this.#spent += excess;
    this.#count -= excess;
  }

  #cutOff(): void {
    this.#runs = this.#runs.slice(this.#first);
    this.#first = 0;
  }
}

/** Large enough for the overhead of a run to be negligible. */
const MAX_RUN_BYTES = 64 * 1024;
/** Entries of evicted runs that the list may still hold. */
const MAX_SPENT_ENTRIES = 1024;
