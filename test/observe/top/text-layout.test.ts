import test from 'ava';
import { type Column, layOutTable, paintLine, segment, widthOf, wrap } from '../../../src/observe/top/text-layout.ts';

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

test('colors are only for those who want them', (t) => {
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

test('the column of the highest rank is left out first, and others are narrowed no further than they should be', (t) => {
  const [name, calls] = COLUMNS as [(typeof COLUMNS)[0], (typeof COLUMNS)[0]];
  const columns = [
    { ...name, minWidth: 8 },
    { ...calls, rank: 2 },
    { ...calls, title: 'OPEN', rank: 1 },
  ];
  const at = (width: number) =>
    layOutTable([['a name that is long', '1']], columns, width).map((line) => paintLine(line, width, false));
  t.deepEqual(at(23), ['NAME        CALLS  OPEN', 'a name th…      1     1']);
  t.deepEqual(at(20), ['NAME      CAL…  OPEN', 'a name …     1     1']);
  t.deepEqual(at(14), ['NAME      OPEN', 'a name …     1']);
  t.deepEqual(at(8), ['NAME', 'a name …']);
  t.deepEqual(at(6), ['NAME', 'a nam…']);
});

test('text is broken at spaces, and within words that are too long', (t) => {
  t.deepEqual(wrap('the database is gone', 12), ['the database', 'is gone']);
  t.deepEqual(wrap('see http://127.0.0.1:8808/', 10), ['see', 'http://127', '.0.0.1:880', '8/']);
  t.deepEqual(wrap('日本語日本語', 5), ['日本', '語日', '本語']);
  t.deepEqual(wrap('', 5), ['']);
  t.deepEqual(wrap('日', 1), ['日'], 'what fits nowhere is left to those who cut');
});
