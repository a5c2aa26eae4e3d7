import test from 'ava';
import { TARGETS } from './targets.ts';

for (const target of TARGETS) {
  test.serial(`fuzz ${target.name}: ${target.promise}`, async (t) => {
    const seed = Math.floor(Math.random() * 0x7fffffff);
    t.log(`seed ${seed}`);
    const { failure } = await target.check({ seed, numRuns: target.runs });
    t.is(failure, undefined);
  });
}
