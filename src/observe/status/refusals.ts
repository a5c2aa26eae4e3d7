import type { ErrorCode } from '../../errors.ts';
import { isUsualRefusal } from '../refusal-log.ts';

/** The reason of a refusal; `connections`: there were too many of them. */
export type RefusalReason = ErrorCode | 'connections';

/** Requests that were refused before they reached a server, without those that belong to the usual course. */
export interface RefusedStatus {
  /** Since the bridge started. */
  readonly total: number;
  readonly lastHour: number;
  /** Refusals of the last hour by reason, the most frequent reason first. */
  readonly byCode: readonly { readonly code: RefusalReason; readonly count: number }[];
}

const MINUTE_MS = 60_000;
const MINUTES = 60;

interface Minute {
  /** Number of the minute since the epoch. */
  readonly number: number;
  readonly counts: Map<RefusalReason, number>;
}

/** Counts refused requests for the status page, by the minute. The reasons are few, so this needs no other limit. */
export class Refusals {
  readonly #wallClock: () => number;
  /** Ring buffer, in which a minute replaces that of an hour before. */
  readonly #minutes: (Minute | undefined)[] = new Array(MINUTES).fill(undefined);
  #total = 0;

  constructor(options: { readonly wallClock: () => number }) {
    this.#wallClock = options.wallClock;
  }

  refused(reason: RefusalReason): void {
    if (reason !== 'connections' && isUsualRefusal(reason)) return;
    this.#total += 1;
    const number = Math.floor(this.#wallClock() / MINUTE_MS);
    const known = this.#minutes[number % MINUTES];
    const minute = known?.number === number ? known : { number, counts: new Map<RefusalReason, number>() };
    this.#minutes[number % MINUTES] = minute;
    minute.counts.set(reason, (minute.counts.get(reason) ?? 0) + 1);
  }

  report(): RefusedStatus {
    const latest = Math.floor(this.#wallClock() / MINUTE_MS);
    const sums = new Map<RefusalReason, number>();
    for (const minute of this.#minutes) {
      if (minute === undefined || minute.number > latest || minute.number <= latest - MINUTES) continue;
      for (const [code, count] of minute.counts) sums.set(code, (sums.get(code) ?? 0) + count);
    }
    return sumUp(this.#total, sums);
  }
}

/** Adds up what several replicas have refused. */
export function mergeRefused(all: readonly RefusedStatus[]): RefusedStatus {
  const sums = new Map<RefusalReason, number>();
  for (const { byCode } of all) for (const { code, count } of byCode) sums.set(code, (sums.get(code) ?? 0) + count);
  return sumUp(
    all.reduce((sum, { total }) => sum + total, 0),
    sums,
  );
}

function sumUp(total: number, sums: ReadonlyMap<RefusalReason, number>): RefusedStatus {
  const byCode = [...sums].map(([code, count]) => ({ code, count })).sort((one, other) => other.count - one.count);
  return { total, lastHour: byCode.reduce((sum, { count }) => sum + count, 0), byCode };
}
