/** Numbers, errors and durations of recently ended calls, in steps of a few seconds. */
import { LATENCY_BUCKETS, latencyBucketOf, quantileMs } from '../latency.ts';

export const STEP_MS = 5000;
/** Number of steps: ten minutes in all. */
export const STEPS = 120;
/** Steps that make up the last minute. The latest of them is still in progress. */
const STEPS_OF_A_MINUTE = 60_000 / STEP_MS;

export interface CallStatistics {
  readonly calls: number;
  /** Calls that got an error from the server, and calls that the bridge could not get answered. */
  readonly errors: number;
  /** Approximate median; null: there were no calls. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** A series as one array per column, the oldest step first. Steps without calls are left out. */
export interface SeriesReport {
  readonly stepMs: number;
  /** Number of steps that the series looks back. */
  readonly steps: number;
  /** Start of each step, in milliseconds since the epoch. */
  readonly atMs: readonly number[];
  readonly calls: readonly number[];
  readonly errors: readonly number[];
  readonly p50Ms: readonly number[];
  readonly p95Ms: readonly number[];
}

/** The calls that ended in one step. */
class Step {
  readonly #latency = new Uint32Array(LATENCY_BUCKETS);
  #shortestMs = Number.POSITIVE_INFINITY;
  #longestMs = 0;
  /** Number of the step since the epoch; -1: the entry is unused. */
  number = -1;
  calls = 0;
  errors = 0;

  begin(number: number): void {
    this.number = number;
    this.calls = 0;
    this.errors = 0;
    this.#latency.fill(0);
    this.#shortestMs = Number.POSITIVE_INFINITY;
    this.#longestMs = 0;
  }

  record(durationMs: number, isError: boolean): void {
    this.calls += 1;
    if (isError) this.errors += 1;
    const bucket = latencyBucketOf(durationMs);
    this.#latency[bucket] = (this.#latency[bucket] ?? 0) + 1;
    if (durationMs < this.#shortestMs) this.#shortestMs = durationMs;
    if (durationMs > this.#longestMs) this.#longestMs = durationMs;
  }

  add(other: Step): void {
    this.calls += other.calls;
    this.errors += other.errors;
    for (const [bucket, count] of other.#latency.entries()) {
      this.#latency[bucket] = (this.#latency[bucket] ?? 0) + count;
    }
    this.#shortestMs = Math.min(this.#shortestMs, other.#shortestMs);
    this.#longestMs = Math.max(this.#longestMs, other.#longestMs);
  }

  /** Returns a percentile of the durations. The step must have calls. */
  percentile(share: number): number {
    return rounded(this.#bounded(quantileMs(this.#latency, share) ?? 0));
  }

  /** Limits an estimate to the measured range, so the duration of a single call is exact. */
  #bounded(ms: number): number {
    return Math.min(Math.max(ms, this.#shortestMs), this.#longestMs);
  }
}

function rounded(ms: number): number {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}

/**
 * The recent steps. Times are wall-clock times: if the clock is set back, steps that are then in the future are not
 * shown.
 */
export class CallSeries {
  readonly #steps = Array.from({ length: STEPS }, () => new Step());

  record(atMs: number, durationMs: number, isError: boolean): void {
    const number = Math.floor(atMs / STEP_MS);
    const step = this.#steps[number % STEPS];
    if (step === undefined) return;
    if (step.number !== number) step.begin(number);
    step.record(durationMs, isError);
  }

  /** Returns true if no call has ended in the time of the series. */
  isQuiet(nowMs: number): boolean {
    return !this.#steps.some((step) => isWithin(step, nowMs, STEPS));
  }

  report(nowMs: number): SeriesReport {
    const steps = this.#within(nowMs, STEPS);
    return {
      stepMs: STEP_MS,
      steps: STEPS,
      atMs: steps.map(({ number }) => number * STEP_MS),
      calls: steps.map(({ calls }) => calls),
      errors: steps.map(({ errors }) => errors),
      p50Ms: steps.map((step) => step.percentile(0.5)),
      p95Ms: steps.map((step) => step.percentile(0.95)),
    };
  }

  lastMinute(nowMs: number): CallStatistics {
    const sum = new Step();
    for (const step of this.#within(nowMs, STEPS_OF_A_MINUTE)) sum.add(step);
    const { calls, errors } = sum;
    if (calls === 0) return NO_CALLS;
    return { calls, errors, p50Ms: sum.percentile(0.5), p95Ms: sum.percentile(0.95) };
  }

  /** Returns the steps of this time that have calls, the oldest first. */
  #within(nowMs: number, count: number): readonly Step[] {
    return this.#steps.filter((step) => isWithin(step, nowMs, count)).sort((one, other) => one.number - other.number);
  }
}

function isWithin({ number, calls }: Step, nowMs: number, count: number): boolean {
  const latest = Math.floor(nowMs / STEP_MS);
  return calls > 0 && number <= latest && number > latest - count;
}

export const NO_CALLS: CallStatistics = { calls: 0, errors: 0, p50Ms: null, p95Ms: null };
export const NO_SERIES: SeriesReport = {
  stepMs: STEP_MS,
  steps: STEPS,
  atMs: [],
  calls: [],
  errors: [],
  p50Ms: [],
  p95Ms: [],
};
