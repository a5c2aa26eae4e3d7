import test from 'ava';
import {
  MAX_RECENT,
  MAX_RECENT_LENGTH,
  OVERLAP_MS,
  RecentChanges,
} from '../../../src/eras/legacy-to-modern/server-subscription.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('a change that another stream tells within a moment is the same one, after it another', (t) => {
  const clock = new FakeClock();
  const recent = new RecentChanges<string>(clock);
  t.false(recent.isRepeated('old', 'a'));
  t.false(recent.isRepeated('old', 'a'), 'what one stream tells twice has happened twice');
  t.true(recent.isRepeated('new', 'a'));
  clock.advance(OVERLAP_MS + 1);
  t.false(recent.isRepeated('new', 'a'));
});

test('so many changes are remembered, the latest', (t) => {
  const recent = new RecentChanges<string>(new FakeClock());
  for (let n = 0; n < MAX_RECENT; n += 1) recent.isRepeated('old', `${n}`);
  recent.isRepeated('old', '0');
  recent.isRepeated('old', 'one more');
  t.true(recent.isRepeated('new', '0'), 'told again lately');
  t.true(recent.isRepeated('new', '2'));
  t.false(recent.isRepeated('new', '1'), 'forgotten');
});

test('of changes of what has a long name fewer are remembered', (t) => {
  const recent = new RecentChanges<string>(new FakeClock());
  const nameOf = (n: number): string => `${n}`.padEnd(1024, 'x');
  for (let n = 0; n <= MAX_RECENT_LENGTH / 1024; n += 1) recent.isRepeated('old', nameOf(n));
  t.true(recent.isRepeated('new', nameOf(1)));
  t.false(recent.isRepeated('new', nameOf(0)), 'forgotten');
});
