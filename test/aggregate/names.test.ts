import test from 'ava';
import { decodeCursor, encodeCursor } from '../../src/aggregate/cursor.ts';
import type { Member } from '../../src/aggregate/members.ts';
import { MAX_NAME_LENGTH, readPrefixedUri, readShownName, shownName } from '../../src/aggregate/names.ts';
import { fitOf } from '../../src/aggregate/templates.ts';

const member = (prefix: string): Member =>
  ({
    name: prefix,
    prefix,
    alwaysShow: [],
    running: undefined,
    isFor: () => true,
    viewOf: (caller) => caller,
    start: () => Promise.reject(new Error('not started here')),
  }) satisfies Member;

test('a name has its prefix, and the longest prefix counts where several fit', (t) => {
  const members = [member('a'), member('a__b'), member('')];
  t.is(shownName(member('a'), 'x'), 'a__x');
  t.is(shownName(member(''), 'x'), 'x');
  t.like(readShownName(members, 'a__x'), { member: { prefix: 'a' }, own: 'x', mayBeShortened: false });
  t.like(readShownName(members, 'a__b__x'), { member: { prefix: 'a__b' }, own: 'x' });
  t.is(readShownName(members, 'x'), undefined);
});

test('a name of 64 characters stays, and a longer one is cut between two characters and never alike', (t) => {
  const fits = 'x'.repeat(MAX_NAME_LENGTH - 3);
  t.is(shownName(member('a'), fits), `a__${fits}`);
  const long = shownName(member('a'), `${fits}y`);
  t.is(long.length, MAX_NAME_LENGTH);
  t.not(long, shownName(member('a'), `${fits}z`));
  t.is(long, shownName(member('a'), `${fits}y`));
  t.true(readShownName([member('a')], long)?.mayBeShortened);
  for (let length = 45; length < 60; length++) {
    t.true(isText(shownName(member('a'), `${'x'.repeat(length)}${'😀'.repeat(20)}`)));
  }
});

const isText = (name: string): boolean => Buffer.from(name).toString() === name;

test('a prefixed URI is read as it was written', (t) => {
  t.like(readPrefixedUri([member('a'), member('b')], 'b+test://x'), { member: { prefix: 'b' }, own: 'test://x' });
  t.is(readPrefixedUri([member('a')], 'test://x'), undefined);
});

test('a cursor is of one list, and of nothing else', (t) => {
  const position = { server: 'ä', shown: 7 };
  const cursor = encodeCursor('tools/list', position);
  t.deepEqual(decodeCursor('tools/list', cursor), position);
  for (const wrong of ['', 'x', `${cursor}x`, cursor.slice(1), cursor.slice(0, -1)]) {
    t.is(decodeCursor('tools/list', wrong), undefined, wrong);
  }
  t.is(decodeCursor('prompts/list', cursor), undefined);
});

for (const [template, uri, fit] of [
  ['test://{id}', 'test://a', 7],
  ['test://{+path}', 'test://a/b/c', 7],
  ['test://{id}/end', 'test://a/end', 11],
  ['test://{id}/end', 'test://a/other', undefined],
  ['test://{a}/{b}', 'test://a', undefined],
  ['test://fixed', 'test://fixed', 12],
  ['test://fixed', 'test://fixed2', undefined],
  ['test://x{?q}', 'test://x', 8],
  ['{a}b{c}', 'b', 1],
  ['ab{x}ba', 'aba', undefined],
] as const) {
  test(`the template ${template} ${fit === undefined ? 'cannot have' : 'may have'} made ${uri}`, (t) => {
    t.is(fitOf(template, uri), fit);
  });
}
