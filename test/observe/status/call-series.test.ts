import test from 'ava';
import { CallSeries, NO_CALLS, NO_SERIES, STEP_MS, STEPS } from '../../../src/observe/status/call-series.ts';

const START_MS = 1_000_000 * STEP_MS;

test('counts calls and errors in the step in which they end, and leaves out steps without calls', (t) => {
  const series = new CallSeries();
  series.record(START_MS, 10, false);
  series.record(START_MS + STEP_MS - 1, 10, true);
  series.record(START_MS + 3 * STEP_MS, 20, false);
  t.deepEqual(series.report(START_MS + 4 * STEP_MS), {
    stepMs: STEP_MS,
    steps: STEPS,
    atMs: [START_MS, START_MS + 3 * STEP_MS],
    calls: [2, 1],
    errors: [1, 0],
    p50Ms: [10, 20],
    p95Ms: [10, 20],
  });
});

test('forgets a step when ten minutes have passed, whether or not it was overwritten', (t) => {
  const series = new CallSeries();
  series.record(START_MS, 10, false);
  const lastMs = START_MS + (STEPS - 1) * STEP_MS;
  t.false(series.isQuiet(lastMs));
  t.deepEqual(series.report(lastMs).calls, [1]);
  t.true(series.isQuiet(lastMs + STEP_MS));
  t.deepEqual(series.report(lastMs + STEP_MS), NO_SERIES);
  series.record(lastMs + STEP_MS, 30, false);
  t.deepEqual(series.report(lastMs + STEP_MS).p50Ms, [30]);
});

test('the last minute sums up twelve steps', (t) => {
  const series = new CallSeries();
  t.deepEqual(series.lastMinute(START_MS), NO_CALLS);
  for (let step = 0; step < 13; step += 1) series.record(START_MS + step * STEP_MS, 10, step === 12);
  t.deepEqual(series.lastMinute(START_MS + 12 * STEP_MS), { calls: 12, errors: 1, p50Ms: 10, p95Ms: 10 });
});

test('percentiles are off by a tenth at most', (t) => {
  for (const longestMs of [3, 50, 700, 40_000]) {
    const series = new CallSeries();
    for (let index = 1; index <= 1000; index += 1) series.record(START_MS, (longestMs * index) / 1000, false);
    const { p50Ms, p95Ms } = series.lastMinute(START_MS);
    t.true(Math.abs((p50Ms ?? 0) / (longestMs * 0.5) - 1) < 0.1, `${p50Ms} of ${longestMs}`);
    t.true(Math.abs((p95Ms ?? 0) / (longestMs * 0.95) - 1) < 0.1, `${p95Ms} of ${longestMs}`);
  }
});

test('a duration that is no time at all, or longer than any class, is counted', (t) => {
  for (const durationMs of [0, -5, Number.NaN, 10 ** 9]) {
    const series = new CallSeries();
    series.record(START_MS, durationMs, false);
    t.is(series.lastMinute(START_MS).calls, 1);
  }
});

test('a wall clock that is set back hides what lies ahead, and goes on', (t) => {
  const series = new CallSeries();
  series.record(START_MS, 10, false);
  const earlierMs = START_MS - 3 * STEP_MS;
  t.deepEqual(series.report(earlierMs).calls, []);
  series.record(earlierMs, 10, false);
  t.deepEqual(series.report(earlierMs).atMs, [earlierMs]);
});
