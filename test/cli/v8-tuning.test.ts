import test from 'ava';
import { growthPercent, HEADROOM_BYTES, withoutOptimizer } from '../../src/cli/v8-tuning.ts';

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

test('what runs without the optimizing compiler gives its result, or its failure, to whoever asked for it', async (t) => {
  t.is(await withoutOptimizer(async () => 'loaded'), 'loaded');
  const failed = new Error('a mistake in the file');
  t.is(await t.throwsAsync(withoutOptimizer(() => Promise.reject(failed))), failed);
});
