import { stripVTControlCharacters } from 'node:util';

/**
 * Matches control characters, line ends, marks that change the text direction, and invisible characters: zero widths,
 * fillers, variation selectors, tags. They can forge lines, control terminals, hide text or imitate another text. V8
 * reads all of Unicode for such an expression, so it is made only for a text that needs it.
 */
function matchHidden(): RegExp {
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
}

/** Matches all these characters except LF. */
function matchHiddenInLines(): RegExp {
  return /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
}

/** Fast path: most texts contain only printable ASCII. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * Makes a peer's text safe for a single line of a log, a message or a report: it cannot forge another line or control
 * the terminal, and contains no invisible characters. Longer text is cut to `maxLength` characters.
 */
export function toPrintable(text: string, maxLength: number): string {
  const clean = printableLine(text).trim();
  return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength)}…`;
}

/** Makes text of any length safe for a single line; see `toPrintable`. */
export function printableLine(text: string): string {
  if (PLAIN.test(text)) return text;
  return stripVTControlCharacters(text).replaceAll('\t', ' ').replace(matchHidden(), '');
}

/** Makes a text printable that quotes peers in several lines. Its line breaks stay. */
export function printableLines(text: string): string {
  if (PLAIN.test(text)) return text;
  return stripVTControlCharacters(text).replaceAll('\t', ' ').replace(matchHiddenInLines(), '');
}

/** Replaces invisible characters in JSON strings by escapes. The JSON has the same value. */
export function escapeHidden(json: string): string {
  return json.replace(matchHiddenInLines(), (character) =>
    Array.from({ length: character.length }, (_, index) => {
      const unit = character.charCodeAt(index);
      return `\\u${unit.toString(16).padStart(4, '0')}`;
    }).join(''),
  );
}

/**
 * Shows the invisible characters in a name of a peer or a file by their codes, as in `admin\\u{200b}`, so that
 * different names look different.
 */
export function showHidden(name: string): string {
  if (PLAIN.test(name)) return name;
  return name.replace(matchHidden(), (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Values after these names, separated by a colon or an equals sign. */
const NAMED_SECRET =
  /((?:key|token|secret|passw(?:or)?d|passphrase|credentials?)[\w-]{0,40}["']?\s{0,3}[:=]\s{0,3}["']?)[^\s"',;]+/gi;
const AUTHORIZATION = /\b(bearer|basic)\s{1,3}[^\s"',;]+/gi;
const USER_OF_URL = /\/\/[^\s/@]+@/g;
/** The prefixes of keys of well-known services. */
const KNOWN_KEY = /\b(?:sk|pk|rk|gh[a-z]|github_pat|glpat|xox[a-z]|npm|hf|AKIA|ASIA|AIza|ya29|eyJ)[-_.A-Za-z0-9]{8,}/g;
/** Words of letters and digits that are as long as this are keys, ids or numbers. */
const LONG_WORD = /[A-Za-z0-9]{12,}/g;

/**
 * Makes a server's text for its operator fit for others: replaces likely credentials by `…`. No rule detects all of
 * them, so such texts are shown only if necessary.
 */
export function hideSecrets(text: string): string {
  return text
    .replace(USER_OF_URL, '//…@')
    .replace(AUTHORIZATION, '$1 …')
    .replace(NAMED_SECRET, '$1…')
    .replace(KNOWN_KEY, '…')
    .replace(LONG_WORD, (word) => (/\d/.test(word) ? '…' : word));
}
