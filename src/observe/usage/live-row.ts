/** One row of the usage while it is being counted. */
import type { DeprecatedFeature } from '../../relay/observer.ts';
import { LATENCY_BUCKETS } from '../latency.ts';
import { type DayCounts, dayOf, MAX_DAYS, type UsageClient, type UsageRow, type UsageServer } from './usage.ts';

/** What is counted on one day. */
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
  /** Sessions of this process; they are no part of what is kept. */
  openSessions = 0;
  /** Where its clients are counted from now on; undefined: here. */
  foldedInto: LiveRow | undefined = undefined;
  /** The oldest first. */
  readonly #days: LiveDay[] = [];
  readonly #uses = new Map<DeprecatedFeature, LiveUse>();
  /** Its JSON; undefined: something has changed since it was made. */
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

  /** Infinity: it has none. */
  get oldestDay(): number {
    return this.#days[0]?.day ?? Infinity;
  }

  seen(timeMs: number): void {
    if (timeMs > this.lastSeenMs) this.lastSeenMs = timeMs;
    if (timeMs < this.firstSeenMs) this.firstSeenMs = timeMs;
    this.#json = undefined;
  }

  /** What is counted at this time. The caller changes it, having said that the row was seen. */
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
      // On a day in the past, as after a clock was set back, nobody knows who was there.
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

  /** Adds what another row or another process has counted. Its open sessions stay where they are. */
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

  /** Begins to count anew, for somebody else has taken what it had. */
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

  /** Few rows change between two writes, so their text is kept. */
  toJson(): string {
    this.#json ??= JSON.stringify(this.toUsage());
    return this.#json;
  }
}

function countsOf(day: LiveDay): DayCounts {
  const last = day.latency.findLastIndex((count) => count > 0);
  return { ...day, latency: [...day.latency.subarray(0, last + 1)] };
}
