import test from 'ava';
import { V8Flags } from '../../src/cli/v8-flags.ts';
import { giveHeapHeadroom, growthPercent, HEADROOM_BYTES, withoutOptimizer } from '../../src/cli/v8-tuning.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { savedCode } from '../support/saved-code.ts';

const MIB = 1024 * 1024;

test('a small heap may grow by the headroom between two collections', (t) => {
  for (const used of [4 * MIB, 9 * MIB, 30 * MIB]) {
    const growth = (used * growthPercent(used)) / 100;
    t.true(growth <= HEADROOM_BYTES && growth > HEADROOM_BYTES * 0.98);
  }
});

test('how a large heap grows is left to V8', (t) => {
  t.is(growthPercent(HEADROOM_BYTES), 0);
  t.is(growthPercent(1000 * MIB), 0);
});

test('the heap has its headroom at once, and saved code is reused where it is loaded with the defaults', (t) => {
  const clock = new FakeClock();
  const flags = new V8Flags();
  const isReused = savedCode();
  t.true(isReused());
  let usedBytes = 9 * MIB;
  // The heap of this process may be large: many files of tests share it.
  giveHeapHeadroom(clock, flags, () => usedBytes);
  t.false(isReused());
  t.true(flags.withDefaults(isReused));
  t.false(isReused());
  usedBytes = 1000 * MIB;
  clock.advance(2000);
  t.true(isReused(), 'V8 decides how a large heap grows');
});

test('what runs without the optimizing compiler gives its result, or its failure, to whoever asked for it', async (t) => {
  t.is(await withoutOptimizer(new V8Flags(), async () => 'loaded'), 'loaded');
  const failed = new Error('a mistake in the file');
  t.is(await t.throwsAsync(withoutOptimizer(new V8Flags(), () => Promise.reject(failed))), failed);
});
