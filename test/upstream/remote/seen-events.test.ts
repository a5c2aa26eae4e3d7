import test from 'ava';
import { SeenEvents } from '../../../src/upstream/remote/server-messages.ts';

test('an event is repeated when it came before the break, not when one has the id of another', (t) => {
  const seen = new SeenEvents();
  t.false(seen.isRepeated('a'));
  t.false(seen.isRepeated('a'), 'breaks the rules, but must not be lost');
  seen.resumed();
  t.true(seen.isRepeated('a'));
  t.false(seen.isRepeated('b'));
  t.false(seen.isRepeated(undefined));
  t.false(seen.isRepeated(''));
});

test('so many ids are remembered, and of long ones, which a server chooses, fewer', (t) => {
  const repeated = (ids: readonly string[]): readonly string[] => {
    const seen = new SeenEvents();
    for (const id of ids) seen.isRepeated(id);
    seen.resumed();
    return ids.filter((id) => seen.isRepeated(id));
  };
  const short = Array.from({ length: 100 }, (_, n) => `${n}`);
  t.deepEqual(repeated(short), short.slice(-64));
  const long = Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  t.deepEqual(repeated(long), long.slice(-8));
});
