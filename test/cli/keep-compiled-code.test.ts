import { EventEmitter } from 'node:events';
import test from 'ava';
import { KEEP_AFTER_MS, keepOnce } from '../../src/cli/v8-tuning.ts';
import { FakeClock } from '../support/fake-clock.ts';

function observe() {
  const clock = new FakeClock();
  const events = new EventEmitter();
  const seen = { times: 0 };
  keepOnce(() => seen.times++, { clock, events });
  return { clock, events, seen };
}

test('compiled code is kept some time after the start, and not again at the end', (t) => {
  const { clock, events, seen } = observe();
  clock.advance(KEEP_AFTER_MS - 1);
  t.is(seen.times, 0);
  clock.advance(1);
  t.is(seen.times, 1);
  events.emit('exit');
  t.is(seen.times, 1);
});

test('a process that ends early keeps its compiled code at its end', (t) => {
  const { clock, events, seen } = observe();
  events.emit('exit');
  clock.advance(KEEP_AFTER_MS);
  t.is(seen.times, 1);
});
