/**
 * Durations of calls, as counts in buckets that grow by the square root of two. The bounds never change, so counts of
 * different days, processes and versions can be added. Quantiles read from them are off by a fifth at most.
 */

const FIRST_BOUND_MS = 0.25;
const BUCKETS_PER_DOUBLING = 2;

/**
 * Number of buckets. The last one is open-ended and starts at twelve minutes, which no call with a usual time limit
 * reaches.
 */
export const LATENCY_BUCKETS = 45;

function upperBoundMs(bucket: number): number {
  return FIRST_BOUND_MS * 2 ** (bucket / BUCKETS_PER_DOUBLING);
}

export function latencyBucketOf(durationMs: number): number {
  // The negated comparison also covers NaN; a negative duration, from a clock that was set back, belongs here too.
  if (!(durationMs > FIRST_BOUND_MS)) return 0;
  const bucket = Math.ceil(BUCKETS_PER_DOUBLING * Math.log2(durationMs / FIRST_BOUND_MS));
  return Math.min(bucket, LATENCY_BUCKETS - 1);
}

/**
 * Returns the time that this share of the calls did not exceed; undefined: there were no calls. `counts` may end early.
 */
export function quantileMs(counts: readonly number[] | Uint32Array, share: number): number | undefined {
  let total = 0;
  for (const count of counts) total += count;
  if (total === 0) return undefined;
  const rank = share * total;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const lowerMs = upperBoundMs(bucket - 1);
      if (bucket >= LATENCY_BUCKETS - 1) return lowerMs;
      // The calls of a bucket are assumed to lie evenly between its bounds, on the logarithmic scale.
      return lowerMs * (upperBoundMs(bucket) / lowerMs) ** ((rank - below) / count);
    }
    below += count;
  }
  return undefined;
}
