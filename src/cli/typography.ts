/** Long dashes and curly quotes: what text documents make of a command line that is copied from them. */

const LONG_DASH = /^[\u2010-\u2015\u2212\uff0d]+/;
const OPENING = /^[\u2018-\u201f\u00ab\u00bb\u2039\u203a]/;
const CLOSING = /[\u2018-\u201f\u00ab\u00bb\u2039\u203a]$/;

export interface Straightened {
  /** The word that shows it. */
  readonly word: string;
  readonly kind: 'long dash' | 'curly quote';
  /** The command line as it was meant. */
  readonly argv: readonly string[];
}

/** Undefined where nothing of that kind stands up to the server's program. What follows is the server's own business. */
export function straighten(argv: readonly string[]): Straightened | undefined {
  let found: Omit<Straightened, 'argv'> | undefined;
  const meant: string[] = [];
  let hasSeparator = false;
  let index = 0;
  while (index < argv.length) {
    const word = argv[index] ?? '';
    index += 1;
    if (LONG_DASH.test(word) && !hasSeparator) {
      found ??= { word, kind: 'long dash' };
      const name = word.replace(LONG_DASH, '');
      meant.push(`${name.length === 1 ? '-' : '--'}${name}`);
    } else if (OPENING.test(word)) {
      found ??= { word, kind: 'curly quote' };
      // The shell has split at the spaces between such quotes.
      const end = argv.findIndex((other, at) => at >= index - 1 && CLOSING.test(other) && other.length > 1);
      const last = end === -1 ? index : end + 1;
      const quoted = argv
        .slice(index - 1, last)
        .join(' ')
        .replace(OPENING, '')
        .replace(CLOSING, '');
      // A program and its arguments, where the program alone belongs.
      meant.push(...(hasSeparator ? quoted.split(/\s+/) : [quoted]));
      index = last;
    } else {
      meant.push(word);
    }
    if (hasSeparator) break;
    hasSeparator = meant.at(-1) === '--';
  }
  return found === undefined ? undefined : { ...found, argv: [...meant, ...argv.slice(index)] };
}
