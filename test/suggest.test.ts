import test from 'ava';
import { editDistance, suggest } from '../src/suggest.ts';

const distances = test.macro({
  title: (_, from: string, to: string, edits: number) => `'${from}' → '${to}' takes ${edits} edit(s)`,
  exec(t, from: string, to: string, edits: number) {
    t.is(editDistance(from, to), edits);
    t.is(editDistance(to, from), edits);
  },
});

test(distances, '', '', 0);
test(distances, 'port', '', 4);
test(distances, 'port', 'ports', 1);
test(distances, 'port', 'part', 1);
test(distances, 'prot', 'port', 1);
test(distances, 'hots', 'host', 1);
test(distances, 'isolaton', 'isolation', 1);
test(distances, 'abc', 'xyz', 3);

const names = ['port', 'host', 'pty', 'session-timeout', 'request-timeout', 'max-sessions'];

test('suggests the name nearest in spelling, whatever the case', (t) => {
  t.deepEqual(suggest('prot', names), ['port']);
  t.deepEqual(suggest('Max-Session', names), ['max-sessions']);
});

test('suggests every name that contains the word as a part', (t) => {
  t.deepEqual(suggest('timeout', names), ['session-timeout', 'request-timeout']);
});

test('prefers a name that contains the words to one that is more than a slip away', (t) => {
  t.deepEqual(suggest('client-id', ['client-key', 'oauth-client-id']), ['oauth-client-id']);
});

test('suggests nothing for a word that resembles nothing, nor for one too short to tell', (t) => {
  t.deepEqual(suggest('frobnicate', names), []);
  t.deepEqual(suggest('y', names), []);
});
