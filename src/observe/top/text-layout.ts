/** Lays out untrusted text in lines for a terminal. */
import picocolors from 'picocolors';
import { printableLine } from '../../printable.ts';

export type Tone = 'plain' | 'strong' | 'quiet' | 'good' | 'warn' | 'bad' | 'selected';

export interface Segment {
  readonly text: string;
  readonly tone: Tone;
}

export type Line = readonly Segment[];

export interface Column<Item> {
  readonly title: string;
  readonly align: 'left' | 'right';
  /** Limit of the column's width. */
  readonly maxWidth: number;
  /** Width below which the column is not narrowed while a column with a rank can be left out instead. */
  readonly minWidth?: number;
  /** The column with the highest rank is the first that is left out where not all fit; undefined: it is always shown. */
  readonly rank?: number;
  readonly cell: (item: Item) => Segment;
}

const GAP = 2;
/** Smallest width that a column is cut to so that all fit. */
const MIN_WIDTH = 4;

export function segment(text: string, tone: Tone = 'plain'): Segment {
  return { text, tone };
}

/**
 * Lays out a line of titles and a line for each item. Columns are as wide as their content. Where they do not fit, the
 * ones of the highest rank are left out, and then the widest are narrowed. Empty columns are left out as well.
 */
export function layOutTable<Item>(items: readonly Item[], given: readonly Column<Item>[], width: number): Line[] {
  const measured = given
    .filter(({ cell }) => items.some((item) => cell(item).text !== ''))
    .map((column) => measure(items, column));
  const columns = leaveOut(measured, width);
  narrow(columns, width);
  return ['title', ...items.keys()].map((row) =>
    columns.map(({ title, cells, align, width: columnWidth }, place) => {
      const { text, tone } = (typeof row === 'number' ? cells[row] : undefined) ?? segment(title, 'quiet');
      const filled = fill(text, columnWidth, align);
      return segment(place === columns.length - 1 ? filled : filled + ' '.repeat(GAP), tone);
    }),
  );
}

/** Returns the width that a table needs so that nothing is left out, narrowed or cut. */
export function widthOfTable<Item>(items: readonly Item[], columns: readonly Column<Item>[]): number {
  const whole = columns.map((column) => ({ ...column, maxWidth: Number.POSITIVE_INFINITY }));
  return totalOf(whole.map((column) => measure(items, column).width));
}

interface MeasuredColumn {
  readonly title: string;
  readonly align: Column<never>['align'];
  readonly cells: readonly Segment[];
  readonly rank: number;
  readonly minWidth: number;
  width: number;
}

function measure<Item>(
  items: readonly Item[],
  { title, align, maxWidth, minWidth, rank, cell }: Column<Item>,
): MeasuredColumn {
  const cells = items.map((item) => {
    const { text, tone } = cell(item);
    return segment(printableLine(text), tone);
  });
  const width = Math.min(maxWidth, Math.max(widthOf(title), ...cells.map(({ text }) => widthOf(text))));
  return { title, align, cells, rank: rank ?? 0, minWidth: Math.min(width, minWidth ?? MIN_WIDTH), width };
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, GAP * (widths.length - 1));
}

function leaveOut(columns: readonly MeasuredColumn[], width: number): MeasuredColumn[] {
  const left = [...columns];
  while (totalOf(left.map(({ minWidth }) => minWidth)) > width) {
    const rank = Math.max(...left.map((column) => column.rank));
    if (!(rank > 0)) break;
    left.splice(
      left.findLastIndex((column) => column.rank === rank),
      1,
    );
  }
  return left;
}

/** Narrows the widest columns, first to the widths that they should have at least and then, if need be, further. */
function narrow(columns: readonly MeasuredColumn[], width: number): void {
  let excess = totalOf(columns.map((column) => column.width)) - width;
  for (const leastOf of [({ minWidth }: MeasuredColumn) => minWidth, () => MIN_WIDTH]) {
    while (excess > 0) {
      const wide = columns.filter((column) => column.width > leastOf(column));
      const widest = wide.find((column) => column.width === Math.max(...wide.map((other) => other.width)));
      if (widest === undefined) break;
      widest.width -= 1;
      excess -= 1;
    }
  }
}

/** Breaks a text into lines of this width, at spaces where there are some. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of printableLine(text).split(' ')) {
    const joined = line === '' ? word : `${line} ${word}`;
    if (widthOf(joined) <= width) {
      line = joined;
      continue;
    }
    if (line !== '') lines.push(line);
    line = '';
    for (const character of word) {
      if (line !== '' && widthOf(line) + widthOfCharacter(character) > width) {
        lines.push(line);
        line = '';
      }
      line += character;
    }
  }
  return line === '' && lines.length > 0 ? lines : [...lines, line];
}

/** Returns the line as text: printable, no wider than this, and with or without colors. */
export function paintLine(line: Line, width: number, hasColors: boolean): string {
  let left = width;
  let painted = '';
  for (const { text, tone } of line) {
    const shown = cut(printableLine(text), left);
    if (shown === '') continue;
    left -= widthOf(shown);
    painted += hasColors ? TONES[tone](shown) : shown;
  }
  return hasColors ? painted : painted.trimEnd();
}

/** Colors are always enabled here, since `paintLine` decides about them. */
const { bold, dim, green, yellow, red, inverse } = picocolors.createColors(true);
const TONES: Readonly<Record<Tone, (text: string) => string>> = {
  plain: String,
  strong: bold,
  quiet: dim,
  good: green,
  warn: yellow,
  bad: red,
  selected: inverse,
};

/** Returns the text cut or padded to this width. */
export function fill(text: string, width: number, align: 'left' | 'right'): string {
  const shown = cut(text, width);
  const space = ' '.repeat(Math.max(0, width - widthOf(shown)));
  return align === 'left' ? shown + space : space + shown;
}

/** Returns the number of terminal columns that a text takes, as most terminals count them. */
export function widthOf(text: string): number {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOfCharacter(character);
  return width;
}

const NARROW = /^[\x20-\x7e]*$/;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const WIDTHLESS = /\p{Mn}|\p{Me}/u;

function widthOfCharacter(character: string): number {
  if (WIDTHLESS.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Returns the text, or its beginning and … if it is wider. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let shown = '';
  let left = width - 1;
  for (const character of text) {
    left -= widthOfCharacter(character);
    if (left < 0) break;
    shown += character;
  }
  return width < 1 ? '' : `${shown}…`;
}
