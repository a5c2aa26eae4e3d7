import test from 'ava';
import { CHANGE_PERIOD_MS, ChangePacer } from '../../src/aggregate/change-pacer.ts';
import { FakeClock } from '../support/fake-clock.ts';

test('the first and the last of many changes are told, and twenty a second between', (t) => {
  const clock = new FakeClock();
  const told: string[] = [];
  const pacer = new ChangePacer(clock, (method) => void told.push(method));
  for (let times = 0; times < 100; times++) {
    pacer.changed('a');
    clock.advance(10);
  }
  // One at the beginning, and one after each twentieth of the second.
  t.is(told.length, 21);
  pacer.changed('a');
  t.is(told.length, 21);
  clock.advance(10 * CHANGE_PERIOD_MS);
  t.is(told.length, 22);
});

test('kinds of changes do not wait for each other, and none is told after the end', (t) => {
  const clock = new FakeClock();
  const told: string[] = [];
  const pacer = new ChangePacer(clock, (method) => void told.push(method));
  pacer.changed('a');
  pacer.changed('b');
  pacer.changed('a');
  t.deepEqual(told, ['a', 'b']);
  pacer.stop();
  clock.advance(CHANGE_PERIOD_MS);
  t.deepEqual(told, ['a', 'b']);
});
