import test from 'ava';
import { LegacyResults } from '../../../src/eras/legacy-to-modern/open-session.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

const LIST = clientFrame({ id: 1, method: 'tools/list' });

/** Tools whose output is a list, which legacy clients get as a member of an object. */
function listed(results: LegacyResults, names: readonly string[], request = LIST): void {
  const tools = names.map((name) => ({ name, inputSchema: { type: 'object' }, outputSchema: { type: 'array' } }));
  results.toLegacy(serverFrame({ id: 1, result: { tools } }), request);
}

/** An object could be the whole output or its value: only who knows the list can tell. */
function isWrapped(results: LegacyResults, name: string): boolean {
  const call = clientFrame({ id: 2, method: 'tools/call', params: { name } });
  const answer = serverFrame({ id: 2, result: { content: [], structuredContent: { a: 1 } } });
  return results.toLegacy(answer, call).bytes.includes('"structuredContent":{"result":{"a":1}}');
}

test('a tool whose output the list shows as no object is answered with one, on all pages of the latest list', (t) => {
  const results = new LegacyResults('2025-11-25');
  t.false(isWrapped(results, 'a'));
  listed(results, ['a']);
  listed(results, ['b'], clientFrame({ id: 1, method: 'tools/list', params: { cursor: 'next' } }));
  t.deepEqual(
    ['a', 'b', 'c'].map((name) => isWrapped(results, name)),
    [true, true, false],
  );
  listed(results, ['c']);
  t.deepEqual(
    ['a', 'b', 'c'].map((name) => isWrapped(results, name)),
    [false, false, true],
  );
});

test('so many such tools are remembered, and of long names, which a server chooses, fewer', (t) => {
  const results = new LegacyResults('2025-11-25');
  listed(
    results,
    Array.from({ length: 1001 }, (_, n) => `t${n}`),
  );
  t.false(isWrapped(results, 't0'));
  t.true(isWrapped(results, 't1'));
  const long = Array.from({ length: 65 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  listed(results, long);
  t.deepEqual(
    long.filter((name) => isWrapped(results, name)),
    long.slice(1),
  );
});
