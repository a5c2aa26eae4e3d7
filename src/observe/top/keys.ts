/** Reads keys from what a terminal in raw mode sends. */

export type Key =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind:
        | 'up'
        | 'down'
        | 'page-up'
        | 'page-down'
        | 'home'
        | 'end'
        | 'enter'
        | 'escape'
        | 'backspace'
        | 'interrupt';
    };

export interface ReadKeys {
  readonly keys: readonly Key[];
  /** The beginning of a sequence whose end has not arrived. A lone ESC is one too, since arrows begin with it. */
  readonly rest: string;
}

const ESCAPE = '\u001b';
/** Control characters that are keys of their own. Ctrl-D ends the view, as it ends other programs. */
const CONTROLS: Readonly<Record<string, Exclude<Key['kind'], 'text'>>> = {
  '\u0003': 'interrupt',
  '\u0004': 'interrupt',
  '\b': 'backspace',
  '\u007f': 'backspace',
  '\r': 'enter',
  '\n': 'enter',
};
/** The ends of sequences after CSI or SS3, as xterm and those that imitate it send them. */
const SEQUENCES: Readonly<Record<string, Exclude<Key['kind'], 'text'>>> = {
  A: 'up',
  B: 'down',
  H: 'home',
  F: 'end',
  '1~': 'home',
  '4~': 'end',
  '5~': 'page-up',
  '6~': 'page-down',
  '7~': 'home',
  '8~': 'end',
};
/** CSI with parameters and a final byte, or SS3 with one letter [ECMA-48]. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals begin their sequences with ESC.
const SEQUENCE = /^\u001b(?:\[([0-?]*[ -/]*[@-~])|O([@-~]))/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals begin their sequences with ESC.
const UNFINISHED = /^\u001b(?:\[[0-?]*[ -/]*|O)?$/;
const PRINTABLE = /^[^\p{C}]$/u;

/** Splits input into keys. Sequences and control characters without a meaning here are left out. */
export function readKeys(input: string): ReadKeys {
  const keys: Key[] = [];
  let left = input;
  while (left !== '') {
    if (UNFINISHED.test(left)) return { keys, rest: left };
    const sequence = SEQUENCE.exec(left);
    if (sequence !== null) {
      const kind = SEQUENCES[sequence[1] ?? sequence[2] ?? ''];
      if (kind !== undefined) keys.push({ kind });
      left = left.slice(sequence[0].length);
      continue;
    }
    const [character = ''] = left;
    left = left.slice(character.length);
    const kind = character === ESCAPE ? 'escape' : CONTROLS[character];
    if (kind !== undefined) keys.push({ kind });
    else if (PRINTABLE.test(character)) keys.push({ kind: 'text', text: character });
  }
  return { keys, rest: '' };
}
