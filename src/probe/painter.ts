import { stripVTControlCharacters } from 'node:util';

export interface PaintOptions {
  readonly color: boolean;
}

/**
 * Two cells; the first of the widest row decides where the second begins. `whole`: the second is to be copied, so that it
 * stands in one line however long it is.
 */
export type Column = readonly [left: string, right: string, wrapping?: 'whole'];

const INDENT = 2;
const GAP = 2;
/** Where less than this is left for the second column, it goes below the first. */
const MIN_RIGHT_WIDTH = 24;
/** Left columns of all tables are at least this wide, so that they line up. */
const MIN_LEFT_WIDTH = 24;

/** Composes text for a terminal: paints, aligns and wraps. */
export class Painter {
  readonly #color: boolean;
  readonly #width: number;
  #lines: string[] = [];

  constructor({ color }: PaintOptions, width: number) {
    this.#color = color;
    this.#width = Math.max(width, 2 * MIN_RIGHT_WIDTH);
  }

  get text(): string {
    return `${this.#lines.map((line) => line.trimEnd()).join('\n')}\n`;
  }

  bold = (text: string): string => this.#paint(1, 22, text);
  dim = (text: string): string => this.#paint(2, 22, text);
  red = (text: string): string => this.#paint(31, 39, text);
  green = (text: string): string => this.#paint(32, 39, text);
  yellow = (text: string): string => this.#paint(33, 39, text);

  #paint(on: number, off: number, text: string): string {
    return this.#color && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  }

  line(text: string): void {
    this.#lines.push(...wrap(text, this.#width, 0));
  }

  heading(text: string): void {
    this.#lines.push('', this.bold(text));
  }

  /** A mark and a paragraph beside it. */
  item(mark: string, text: string): void {
    const indent = INDENT + visibleLength(mark) + 1;
    const [first = '', ...rest] = wrap(text, this.#width - indent, 0);
    this.#lines.push(`${' '.repeat(INDENT)}${mark} ${first}`, ...rest.map((line) => `${' '.repeat(indent)}${line}`));
  }

  columns(rows: readonly Column[]): void {
    const widest = Math.max(MIN_LEFT_WIDTH, ...rows.map(([left]) => visibleLength(left)));
    const start = INDENT + widest + GAP;
    const isNarrow = this.#width - start < MIN_RIGHT_WIDTH;
    for (const [left, right, wrapping] of rows) {
      const indent = isNarrow ? 2 * INDENT : start;
      const width = wrapping === 'whole' ? Infinity : this.#width - indent;
      const [first = '', ...rest] = wrap(right, width, leadingSpaces(right));
      const head = ' '.repeat(INDENT) + left;
      if (isNarrow && left !== '') this.#lines.push(head, ' '.repeat(indent) + first);
      else
        this.#lines.push(
          isNarrow ? ' '.repeat(indent) + first : head.padEnd(start + head.length - visibleLength(head)) + first,
        );
      for (const line of rest) this.#lines.push(' '.repeat(indent) + line);
    }
  }
}

function leadingSpaces(text: string): number {
  return text.length - text.trimStart().length;
}

function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Breaks at spaces; a word longer than a line (a URL to be copied) is left whole. */
function wrap(text: string, width: number, hanging: number): string[] {
  const lines: string[] = [];
  let line = '';
  // Runs of spaces are alignment and stay.
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && visibleLength(longer) > width) {
      lines.push(line);
      line = ' '.repeat(hanging) + word;
    } else {
      line = longer;
    }
  }
  lines.push(line);
  return lines;
}
