/** What a terminal shows after a program has written to it: lines of runs that look alike. */
export type Look = 'plain' | 'bold' | 'dim' | 'green' | 'red' | 'cyan';

export interface Run {
  readonly text: string;
  readonly look: Look;
}

export type Line = readonly Run[];

const ESCAPE = '\x1b[';
const ERASE_LINE = `${ESCAPE}2K`;

/** The codes that the program writes. It never combines two, so each of them sets the whole look. */
const LOOKS: Readonly<Record<string, Look>> = {
  0: 'plain',
  1: 'bold',
  2: 'dim',
  22: 'plain',
  31: 'red',
  32: 'green',
  36: 'cyan',
  39: 'plain',
};

/** @throws Error for what the program does not write outside of `top` */
export function parseScreen(written: string): readonly Line[] {
  return written.replaceAll('\r\n', '\n').split('\n').map(parseLine);
}

export function textOf(line: Line): string {
  return line.map(({ text }) => text).join('');
}

/** As a terminal does, which breaks a line anywhere. */
export function wrapLine(line: Line, columns: number): readonly Line[] {
  const rows: Run[][] = [[]];
  let left = columns;
  for (const { text, look } of line) {
    for (let rest = text; rest !== ''; rest = rest.slice(left), left = columns) {
      rows.at(-1)?.push({ text: rest.slice(0, left), look });
      if (rest.length <= left) {
        left -= rest.length;
        break;
      }
      rows.push([]);
    }
  }
  return rows;
}

function parseLine(written: string): Line {
  // The program erases only its progress messages.
  const left = written.split(ERASE_LINE).at(-1) ?? '';
  const [first = '', ...parts] = left.split(ESCAPE);
  const runs: Run[] = [{ text: first, look: 'plain' }];
  for (const part of parts) {
    const [, code = '', text = ''] = /^(\d+)m(.*)$/.exec(part) ?? [];
    runs.push({ text, look: LOOKS[code] ?? unknown(part) });
  }
  return runs.filter(({ text }) => text !== '');
}

function unknown(part: string): never {
  throw new Error(`the recording does not know what ${JSON.stringify(part)} does to a terminal`);
}
