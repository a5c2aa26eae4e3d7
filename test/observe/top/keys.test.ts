import test from 'ava';
import { type Key, readKeys } from '../../../src/observe/top/keys.ts';

function namesOf(keys: readonly Key[]): readonly string[] {
  return keys.map((key) => (key.kind === 'text' ? key.text : key.kind));
}

test('reads the keys of the terminals in use', (t) => {
  for (const [input, expected] of [
    ['q', ['q']],
    ['日é', ['日', 'é']],
    ['\u001b[A\u001b[B', ['up', 'down']],
    ['\u001bOA\u001bOB', ['up', 'down']],
    ['\u001b[5~\u001b[6~', ['page-up', 'page-down']],
    ['\u001b[H\u001b[F\u001b[1~\u001b[4~', ['home', 'end', 'home', 'end']],
    ['\r\n\u007f\b\u0003\u0004', ['enter', 'enter', 'backspace', 'backspace', 'interrupt', 'interrupt']],
    ['\u001bx', ['escape', 'x']],
  ] as const) {
    t.deepEqual(readKeys(input), { keys: readKeys(input).keys, rest: '' });
    t.deepEqual(namesOf(readKeys(input).keys), expected, JSON.stringify(input));
  }
});

test('other sequences and control characters are no keys, and no text of a filter', (t) => {
  t.deepEqual(readKeys('\u001b[3~\u001b[1;5A\u001b[200~\u0001\u0000\u202e'), { keys: [], rest: '' });
});

test('what may go on is kept', (t) => {
  for (const rest of ['\u001b', '\u001b[', '\u001bO', '\u001b[1;']) {
    const read = readKeys(`j${rest}`);
    t.deepEqual(namesOf(read.keys), ['j']);
    t.is(read.rest, rest);
  }
});
