import test from 'ava';
import { ProcessReplacement } from '../../../src/relay/shared/process-replacement.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeLink, remainsOf } from '../../support/fake-peers.ts';

const PAUSE_MS = 250;

/** One process is leaving, and the next one is to be started. */
function replaceProcess() {
  const clock = new FakeClock();
  const replacement = new ProcessReplacement(clock);
  const link = new FakeLink();
  const { end } = remainsOf(link);
  replacement.awaitExit(link);
  const starts: number[] = [];
  const cancel = replacement.after(PAUSE_MS, () => void starts.push(clock.now()));
  return { clock, replacement, end, starts, cancel };
}

test('the next process starts after the pause where the one before is gone by then', async (t) => {
  const { clock, replacement, end, starts } = replaceProcess();
  await end();
  t.true(replacement.isClear);
  clock.advance(PAUSE_MS - 1);
  t.deepEqual(starts, []);
  clock.advance(1);
  t.deepEqual(starts, [PAUSE_MS]);
  clock.advance(60_000);
  t.is(starts.length, 1);
});

test('the next process starts when the one before is gone where that takes longer than the pause', async (t) => {
  const { clock, replacement, end, starts } = replaceProcess();
  clock.advance(60_000);
  t.deepEqual(starts, []);
  t.false(replacement.isClear);
  await end();
  t.deepEqual(starts, [60_000]);
  t.is(clock.pendingTimers, 0);
});

test('the next process waits for all that are leaving', async (t) => {
  const { clock, replacement, end, starts } = replaceProcess();
  const other = new FakeLink();
  const { end: endOther } = remainsOf(other);
  replacement.awaitExit(other);
  clock.advance(PAUSE_MS);
  await endOther();
  t.deepEqual(starts, []);
  await end();
  t.deepEqual(starts, [PAUSE_MS]);
});

test('a server that is no process is not waited for', (t) => {
  const clock = new FakeClock();
  const replacement = new ProcessReplacement(clock);
  replacement.awaitExit(new FakeLink());
  t.true(replacement.isClear);
  let starts = 0;
  replacement.after(PAUSE_MS, () => {
    starts += 1;
  });
  clock.advance(PAUSE_MS);
  t.is(starts, 1);
});

for (const [when, passedMs] of [
  ['during the pause', 0],
  ['while it waits for the one before', PAUSE_MS],
] as const) {
  test(`a start that is canceled ${when} does not happen, and leaves no timer`, async (t) => {
    const { clock, end, starts, cancel } = replaceProcess();
    clock.advance(passedMs);
    cancel();
    clock.advance(60_000);
    await end();
    t.deepEqual(starts, []);
    t.is(clock.pendingTimers, 0);
  });
}
