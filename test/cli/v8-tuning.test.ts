import test from 'ava';
import { growthPercent, HEADROOM_BYTES } from '../../src/cli/v8-tuning.ts';

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
