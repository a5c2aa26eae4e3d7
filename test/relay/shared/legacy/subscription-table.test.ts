import test from 'ava';
import { MAX_SUBSCRIBED } from '../../../../src/mcp/vocabulary/subscribed-uris.ts';
import { SubscriptionTable } from '../../../../src/relay/shared/legacy/legacy-state.ts';

function tableOf(...entries: readonly (readonly [uri: string, client: string])[]): SubscriptionTable<string> {
  const table = new SubscriptionTable<string>();
  for (const [uri, client] of entries) table.add(uri, client);
  return table;
}

test('only the last client of a resource gives it up', (t) => {
  const table = tableOf(['a', 'x'], ['a', 'y'], ['a', 'x']);
  t.false(table.remove('a', 'z'));
  t.false(table.remove('a', 'x'));
  t.false(table.remove('a', 'x'));
  t.true(table.has('a'));
  t.true(table.remove('a', 'y'));
  t.false(table.has('a'));
  t.false(table.remove('a', 'y'));
  t.deepEqual(table.uris(), []);
});

test('a client that leaves gives up what it had alone', (t) => {
  const table = tableOf(['a', 'x'], ['b', 'x'], ['b', 'y'], ['c', 'y']);
  t.deepEqual(table.removeClient('x'), ['a']);
  t.deepEqual(table.uris(), ['b', 'c']);
  t.deepEqual(table.removeClient('x'), []);
  t.deepEqual(table.removeClient('y'), ['b', 'c']);
});

test('a subscription counts as granted from when the server says so until it is given up', (t) => {
  const table = tableOf(['a', 'x']);
  t.false(table.isGranted('a'));
  table.setGranted('a', true);
  t.true(table.isGranted('a'));
  table.add('a', 'y');
  t.true(table.isGranted('a'));
  table.remove('a', 'x');
  table.remove('a', 'y');
  table.setGranted('a', true);
  t.false(table.isGranted('a'));
  table.add('a', 'x');
  t.false(table.isGranted('a'));
});

for (const [uri, expected] of [
  ['file:///a', ['whole']],
  ['file:///a/b', ['whole', 'part']],
  ['file:///a/b/c', ['whole', 'part']],
  ['file:///a/', ['whole']],
  ['file:///ab', []],
  ['file:///', []],
  ['', []],
] as const) {
  test(`an update of ${JSON.stringify(uri)} concerns ${expected.join(' and ') || 'nobody'}`, (t) => {
    const table = tableOf(['file:///a', 'whole'], ['file:///a/b', 'part'], ['file:///a/b', 'whole']);
    t.deepEqual([...table.clientsFor(uri)], [...expected]);
  });
}

test('a client that has as many as it may gets no more, which disturbs no other', (t) => {
  const table = new SubscriptionTable<string>();
  for (let n = 0; n < MAX_SUBSCRIBED; n += 1) t.true(table.add(`x:${n}`, 'x'));
  t.false(table.add('more', 'x'));
  t.false(table.has('more'));
  t.true(table.add('more', 'y'));
  t.true(table.add('x:0', 'x'));
  t.is(table.removeClient('x').length, MAX_SUBSCRIBED);
  t.true(table.add('more', 'x'));
});
