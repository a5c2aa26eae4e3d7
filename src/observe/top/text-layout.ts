/** Lays out untrusted text in lines for a terminal. */
import picocolors from 'picocolors';
import { printableLine } from '../../printable.ts';

export type Tone = 'plain' | 'strong' | 'quiet' | 'good' | 'warn' | 'bad';

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
  readonly cell: (item: Item) => Segment;
}

const GAP = 2;
/** Smallest width that a column is cut to so that all fit. */
const MIN_WIDTH = 4;

export function segment(text: string, tone: Tone = 'plain'): Segment {
  return { text, tone };
}

/**
 * Lays out a line of titles and a line for each item. Columns are as wide as their content, the widest are narrowed
 * first, and empty columns are left out.
 */
export function layOutTable<Item>(items: readonly Item[], given: readonly Column<Item>[], width: number): Line[] {
  const columns = given.filter(({ cell }) => items.some((item) => cell(item).text !== ''));
  const rows = items.map((item) =>
    columns.map(({ cell }) => {
      const { text, tone } = cell(item);
      return { text: printableLine(text), tone };
    }),
  );
  const titles = columns.map(({ title }) => segment(title, 'quiet'));
  const widths = columns.map(({ maxWidth }, place) =>
    Math.min(maxWidth, Math.max(...[titles, ...rows].map((row) => widthOf(row[place]?.text ?? '')))),
  );
  narrow(widths, width - GAP * (columns.length - 1));
  return [titles, ...rows].map((row) =>
    row.map(({ text, tone }, place) => {
      const isLast = place === columns.length - 1;
      const filled = fill(text, widths[place] ?? 0, columns[place]?.align ?? 'left');
      return segment(isLast ? filled : filled + ' '.repeat(GAP), tone);
    }),
  );
}

function narrow(widths: number[], width: number): void {
  let excess = widths.reduce((sum, one) => sum + one, 0) - width;
  while (excess > 0) {
    const widest = Math.max(...widths);
    if (widest <= MIN_WIDTH) return;
    widths[widths.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
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
const { bold, dim, green, yellow, red } = picocolors.createColors(true);
const TONES: Readonly<Record<Tone, (text: string) => string>> = {
  plain: String,
  strong: bold,
  quiet: dim,
  good: green,
  warn: yellow,
  bad: red,
};

function fill(text: string, width: number, align: 'left' | 'right'): string {
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

function cut(text: string, width: number): string {
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
