import test from 'ava';
import { type Column, layOutTable, paintLine, segment, widthOf } from '../../../src/observe/top/text-layout.ts';

const COLUMNS: readonly Column<readonly [string, string]>[] = [
  { title: 'NAME', align: 'left', maxWidth: 10, cell: ([name]) => segment(name, 'strong') },
  { title: 'CALLS', align: 'right', maxWidth: 10, cell: ([, calls]) => segment(calls) },
];

function textOf(items: readonly (readonly [string, string])[], width: number): readonly string[] {
  return layOutTable(items, COLUMNS, width).map((line) => paintLine(line, width, false));
}

test('columns are as wide as what is in them, and numbers stand on the right', (t) => {
  t.deepEqual(
    textOf(
      [
        ['one', '7'],
        ['another', '1234567'],
      ],
      80,
    ),
    ['NAME       CALLS', 'one            7', 'another  1234567'],
  );
});

test('a column in which nothing stands is left out', (t) => {
  t.deepEqual(textOf([['one', '']], 80), ['NAME', 'one']);
  t.deepEqual(textOf([], 80), ['']);
});

test('what is longer than its column, or than the terminal is wide, is cut', (t) => {
  t.deepEqual(textOf([['a name that is long', '1']], 80), ['NAME        CALLS', 'a name th…      1']);
  t.deepEqual(textOf([['a name that is long', '1']], 14), ['NAME     CALLS', 'a name…      1']);
  t.deepEqual(textOf([['a name that is long', '1']], 5), ['NAME…', 'a n……']);
});

test('what others have written neither drives the terminal nor begins a line', (t) => {
  const [, line] = textOf([['\u001b[2Ja\nb\u202e', '\u0007']], 80);
  t.is(line, 'ab');
  t.is(paintLine([segment('\u001b]0;title\u0007x\ry', 'bad')], 80, true), '\u001b[31mxy\u001b[39m');
});

test('colours are only for those who want them', (t) => {
  const line = [segment('one ', 'good'), segment('two')];
  t.is(paintLine(line, 80, true), '\u001b[32mone \u001b[39mtwo');
  t.is(paintLine(line, 80, false), 'one two');
  t.is(paintLine(line, 5, true), '\u001b[32mone \u001b[39m…');
});

test('counts columns as terminals do', (t) => {
  t.is(widthOf('plain'), 5);
  t.is(widthOf('日本'), 4);
  t.is(widthOf('é'), 1);
  t.is(widthOf('e\u0301'), 1);
  t.is(widthOf('🚀'), 2);
  t.deepEqual(textOf([['日本語日本語', '1']], 80), ['NAME        CALLS', '日本語日…       1']);
});
