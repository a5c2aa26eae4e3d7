import test from 'ava';
import { toPrintable } from '../../src/process/printable.ts';

test('removes colours and cursor movements', (t) => {
  t.is(toPrintable('\u001b[31mred\u001b[0m \u001b[2Kdone\u001b]0;title\u0007', 100), 'red done');
});

test('removes what could forge a log line or hide text', (t) => {
  t.is(toPrintable('a\r\nb\u0085c\u2028d\u0000e\u007ff\u202eg', 100), 'abcdefg');
});

test('keeps letters, symbols and emoji of any script', (t) => {
  t.is(toPrintable('  naïve → 漢字 👩‍🚀\tok ', 100), 'naïve → 漢字 👩‍🚀 ok');
});

test('cuts long text and shows that it did', (t) => {
  t.is(toPrintable('abcdef', 6), 'abcdef');
  t.is(toPrintable('abcdefg', 6), 'abcdef…');
});
