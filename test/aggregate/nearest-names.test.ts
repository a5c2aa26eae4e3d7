import test from 'ava';
import { nearestNames } from '../../src/aggregate/nearest-names.ts';

const NAMES = ['github__create_issue', 'github__list_issues', 'gitlab__create_issue', 'slack__post_message', 'plain'];

test('finds the names that differ in case and marks alone, then those of another server', (t) => {
  t.deepEqual(nearestNames('GitHub.create-issue', NAMES, 3), ['github__create_issue', 'gitlab__create_issue']);
});

test('finds a name that is given without its prefix, or with another one', (t) => {
  t.deepEqual(nearestNames('create_issue', NAMES, 3), ['github__create_issue', 'gitlab__create_issue']);
  t.deepEqual(nearestNames('chat__post_message', NAMES, 3), ['slack__post_message']);
  t.deepEqual(nearestNames('x__plain', NAMES, 3), ['plain']);
});

test('finds a name with a few other letters, the nearest first', (t) => {
  t.deepEqual(nearestNames('github__list_isues', NAMES, 1), ['github__list_issues']);
  t.deepEqual(nearestNames('slack__psot_mesage', NAMES, 3), ['slack__post_message']);
  t.deepEqual(nearestNames('pliann', NAMES, 3), []);
  t.deepEqual(nearestNames('plani', NAMES, 3), ['plain']);
});

test('finds nothing for what resembles nothing', (t) => {
  for (const name of ['frobnicate', '', '__', 'x'.repeat(1000)]) t.deepEqual(nearestNames(name, NAMES, 3), [], name);
});

test('returns no more than the limit, in the order of the names where all are as near', (t) => {
  const names = ['d__same', 'c__same', 'b__same', 'a__same'];
  t.deepEqual(nearestNames('same', names, 2), ['a__same', 'b__same']);
});

test('compares a name letter by letter with a limited number of others, be they as similar as can be', (t) => {
  const similar = Array.from({ length: 20_000 }, (_, index) => `${'ab'.repeat(48)}zzzz${10_000 + index}`);
  const nearest = `${'ab'.repeat(50)}1234x`;
  t.deepEqual(nearestNames(nearest.slice(0, -1), [nearest, ...similar], 1), [nearest]);
  const found = nearestNames(nearest.slice(0, -1), [...similar, nearest], 3);
  t.is(found.length, 3);
  t.false(found.includes(nearest), 'the limit was reached before it');
});
