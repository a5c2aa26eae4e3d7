/** A row of the usage that is being counted. */
import type { DeprecatedFeature } from '../../relay/observer.ts';
import { LATENCY_BUCKETS } from '../latency.ts';
import { type DayCounts, dayOf, MAX_DAYS, type UsageClient, type UsageRow, type UsageServer } from './usage.ts';

/** The counts of one day. */
export interface LiveDay {
  readonly day: number;
  sessions: number;
  carried: number;
  refused: number;
  calls: number;
  errors: number;
  requestBytes: number;
  answerBytes: number;
  readonly latency: Uint32Array;
}

interface LiveUse {
  count: number;
  lastSeenMs: number;
}

export class LiveRow {
  readonly client: UsageClient;
  readonly server: UsageServer;
  firstSeenMs: number;
  lastSeenMs: number;
  /** Open sessions in this process, which are not stored. */
  openSessions = 0;
  /** Row that counts its clients from now on; undefined: this one. */
  foldedInto: LiveRow | undefined = undefined;
  /** The oldest first. */
  readonly #days: LiveDay[] = [];
  readonly #uses = new Map<DeprecatedFeature, LiveUse>();
  /** Cached JSON; undefined: the row has changed since. */
  #json: string | undefined = undefined;

  constructor(client: UsageClient, server: UsageServer, nowMs: number) {
    this.client = client;
    this.server = server;
    this.firstSeenMs = nowMs;
    this.lastSeenMs = nowMs;
  }

  get dayCount(): number {
    return this.#days.length;
  }

  /** Oldest day that has counts; Infinity: there is none. */
  get oldestDay(): number {
    return this.#days[0]?.day ?? Infinity;
  }

  seen(timeMs: number): void {
    if (timeMs > this.lastSeenMs) this.lastSeenMs = timeMs;
    if (timeMs < this.firstSeenMs) this.firstSeenMs = timeMs;
    this.#json = undefined;
  }

  /**
   * Returns the counts of the day of this time, for the caller to change. `seen` must have been called before, as it
   * drops the cached JSON.
   */
  at(timeMs: number): LiveDay {
    const day = dayOf(timeMs);
    const last = this.#days.at(-1);
    return last !== undefined && last.day === day ? last : this.#addDay(day);
  }

  #addDay(day: number): LiveDay {
    const index = this.#days.findIndex((known) => known.day >= day);
    const next = index === -1 ? undefined : this.#days[index];
    if (next?.day === day) return next;
    const added: LiveDay = {
      day,
      sessions: 0,
      // For a day in the past, which is added after the clock was set back, the sessions that were open are not known.
      carried: next === undefined ? this.openSessions : 0,
      refused: 0,
      calls: 0,
      errors: 0,
      requestBytes: 0,
      answerBytes: 0,
      latency: new Uint32Array(LATENCY_BUCKETS),
    };
    this.#days.splice(index === -1 ? this.#days.length : index, 0, added);
    if (this.#days.length > MAX_DAYS) this.forgetOldestDay();
    return added;
  }

  forgetOldestDay(): void {
    this.#days.shift();
    this.#json = undefined;
  }

  forgetDaysBefore(day: number): void {
    while (this.oldestDay < day) this.forgetOldestDay();
  }

  used(feature: DeprecatedFeature, count: number, timeMs: number): void {
    this.seen(timeMs);
    const use = this.#uses.get(feature);
    if (use === undefined) this.#uses.set(feature, { count, lastSeenMs: timeMs });
    else {
      use.count += count;
      use.lastSeenMs = Math.max(use.lastSeenMs, timeMs);
    }
  }

  /** Adds the counts of another row or process. The caller handles its open sessions. */
  add(row: UsageRow): void {
    this.seen(row.firstSeenMs);
    this.seen(row.lastSeenMs);
    for (const counts of row.days) {
      const day = this.#addDay(counts.day);
      day.sessions += counts.sessions;
      day.carried += counts.carried;
      day.refused += counts.refused;
      day.calls += counts.calls;
      day.errors += counts.errors;
      day.requestBytes += counts.requestBytes;
      day.answerBytes += counts.answerBytes;
      for (const [bucket, count] of counts.latency.entries()) day.latency[bucket] = (day.latency[bucket] ?? 0) + count;
    }
    for (const { feature, count, lastSeenMs } of row.deprecated) this.used(feature, count, lastSeenMs);
  }

  /** Starts counting from zero, after another process has taken over the counts. */
  clear(nowMs: number): void {
    this.firstSeenMs = nowMs;
    this.lastSeenMs = nowMs;
    this.#days.length = 0;
    this.#uses.clear();
    this.#json = undefined;
  }

  toUsage(): UsageRow {
    const { client, server, firstSeenMs, lastSeenMs } = this;
    const deprecated = [...this.#uses].map(([feature, use]) => ({ feature, ...use }));
    return { client, server, firstSeenMs, lastSeenMs, days: this.#days.map(countsOf), deprecated };
  }

  /** Returns the row as JSON, which is cached since few rows change between two writes. */
  toJson(): string {
    this.#json ??= JSON.stringify(this.toUsage());
    return this.#json;
  }
}

function countsOf(day: LiveDay): DayCounts {
  const last = day.latency.findLastIndex((count) => count > 0);
  return { ...day, latency: [...day.latency.subarray(0, last + 1)] };
}
