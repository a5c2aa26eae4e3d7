import test from 'ava';
import { LATENCY_BUCKETS, latencyBucketOf, quantileMs } from '../../src/observe/latency.ts';

function countsOf(durationsMs: readonly number[]): readonly number[] {
  const counts = new Array<number>(LATENCY_BUCKETS).fill(0);
  for (const durationMs of durationsMs) {
    const bucket = latencyBucketOf(durationMs);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return counts;
}

test('a quantile is off by a fifth at most', (t) => {
  const durationsMs = Array.from({ length: 1000 }, (_, index) => 0.4 * 1.01 ** index);
  for (const share of [0.05, 0.5, 0.95, 0.99]) {
    const exactMs = durationsMs[Math.ceil(share * durationsMs.length) - 1] as number;
    const foundMs = quantileMs(countsOf(durationsMs), share) as number;
    t.true(Math.abs(foundMs / exactMs - 1) < 0.2, `${foundMs} for ${exactMs}`);
  }
});

test('calls that are all equally long have that length', (t) => {
  for (const durationMs of [1, 30, 1000, 60_000]) {
    const foundMs = quantileMs(countsOf([durationMs, durationMs, durationMs]), 0.5) as number;
    t.true(Math.abs(foundMs / durationMs - 1) < 0.42);
  }
});

test('every duration has a bucket, odd ones included', (t) => {
  for (const durationMs of [-1, 0, Number.NaN]) t.is(latencyBucketOf(durationMs), 0);
  t.is(latencyBucketOf(Infinity), LATENCY_BUCKETS - 1);
  t.is(latencyBucketOf(1e12), LATENCY_BUCKETS - 1);
  let before = 0;
  for (let durationMs = 0.01; durationMs < 1e7; durationMs *= 1.1) {
    const bucket = latencyBucketOf(durationMs);
    t.true(bucket >= before && bucket < LATENCY_BUCKETS);
    before = bucket;
  }
});

test('where there were no calls there is no quantile', (t) => {
  t.is(quantileMs([], 0.5), undefined);
  t.is(quantileMs([0, 0], 0.5), undefined);
});
