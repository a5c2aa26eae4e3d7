/** Renders text in two columns, wrapped at the width of the terminal. */
import type { Row } from './commands.ts';

export interface Table {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** The style of titles and left columns. Without colors, text is returned unchanged. */
export interface Style {
  title(text: string): string;
  left(text: string): string;
}

export interface Layout {
  /** The column at which right sides begin. */
  readonly indent: number;
  readonly width: number;
  readonly style: Style;
}

/** The minimum width of the right column, which keeps it readable. */
const MIN_RIGHT_WIDTH = 40;

export function renderTable({ title, rows }: Table, layout: Layout): readonly string[] {
  return [layout.style.title(title), ...rows.flatMap((row) => renderRow(row, layout))];
}

export function indentOf(rows: readonly Row[]): number {
  return Math.max(...rows.map(({ left }) => left.length)) + 4;
}

/** If the left side is too long for its column, the right side begins on the next line. */
function renderRow({ left, right }: Row, { indent, width, style }: Layout): readonly string[] {
  const column = Math.min(indent, width - MIN_RIGHT_WIDTH);
  const lines = wrap(right, width - column).map((line) => ' '.repeat(column) + line);
  if (left.length + 4 <= column) {
    const [first = '', ...more] = lines;
    return [`  ${style.left(left)}${first.slice(left.length + 2)}`, ...more];
  }
  const [head = '', ...continued] = wrap(left, width - 2);
  return [`  ${style.left(head)}`, ...continued.map((line) => `    ${style.left(line)}`), ...lines];
}

export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
