import test from 'ava';
import { asRequired, compareScores } from './compare.ts';
import type { CheckStatus, Score } from './suite.ts';

const score = (statuses: Record<string, CheckStatus>): Score =>
  new Map(
    Object.entries(statuses).map(([check, status]) => [check, { status, isRequired: true, explanation: undefined }]),
  );

const names = (differences: readonly { readonly check: string }[]) => differences.map(({ check }) => check);

test('counts the checks that pass both ways and nothing else', (t) => {
  const direct = score({ a: 'SUCCESS', b: 'SUCCESS', c: 'INFO' });
  const { passed, lost } = compareScores(direct, score({ a: 'SUCCESS', b: 'SUCCESS', c: 'SUCCESS' }), []);
  t.is(passed, 2);
  t.deepEqual(lost, []);
});

test('a check that passes directly is lost when the bridge makes it fail, warn, not apply or disappear', (t) => {
  const direct = score({ a: 'SUCCESS', b: 'SUCCESS', c: 'SUCCESS', d: 'SUCCESS', e: 'SUCCESS' });
  const bridged = score({ a: 'FAILURE', b: 'WARNING', c: 'INFO', d: 'SUCCESS' });
  const { passed, lost } = compareScores(direct, bridged, []);
  t.is(passed, 1);
  t.deepEqual(names(lost), ['a', 'b', 'c', 'e']);
});

test('a failure that only the bridge has counts as lost', (t) => {
  const { lost } = compareScores(score({ a: 'INFO' }), score({ a: 'FAILURE', b: 'WARNING', c: 'INFO' }), []);
  t.deepEqual(names(lost), ['a', 'b']);
});

test('a listed difference is expected, and its entry is stale once the check passes', (t) => {
  const allowed = [
    { check: 'a', reason: 'known' },
    { check: 'b', reason: 'was known' },
  ];
  const direct = score({ a: 'SUCCESS', b: 'SUCCESS' });
  const { lost, expected, stale } = compareScores(direct, score({ a: 'INFO', b: 'SUCCESS' }), allowed);
  t.deepEqual(names(lost), []);
  t.deepEqual(names(expected), ['a']);
  t.deepEqual(names(stale), ['b']);
});

test('an entry can speak of all checks of a scenario', (t) => {
  const direct = score({ 'a / x': 'SUCCESS', 'a / y': 'SUCCESS', 'ab / x': 'SUCCESS' });
  const bridged = score({ 'a / x': 'FAILURE', 'a / y': 'SUCCESS', 'ab / x': 'FAILURE' });
  const allowed = [
    { check: 'a / *', reason: 'known' },
    { check: 'c / *', reason: 'was known' },
  ];
  const { lost, expected, stale } = compareScores(direct, bridged, allowed);
  t.deepEqual(names(lost), ['ab / x']);
  t.deepEqual(names(expected), ['a / x']);
  t.deepEqual(names(stale), ['c / *']);
});

test('where nothing can be compared, every check that was judged has to pass', (t) => {
  const required = asRequired(score({ a: 'FAILURE', b: 'INFO' }), score({ a: 'SUCCESS', c: 'WARNING', d: 'SKIPPED' }));
  t.deepEqual(
    [...required].map(([check, { status }]) => [check, status]),
    [
      ['a', 'SUCCESS'],
      ['c', 'SUCCESS'],
    ],
  );
  t.deepEqual(names(compareScores(required, score({ a: 'SUCCESS', c: 'WARNING' }), []).lost), ['c']);
});
