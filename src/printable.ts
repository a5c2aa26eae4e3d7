import { stripVTControlCharacters } from 'node:util';

/**
 * Control characters, ends of lines, marks that turn the reading direction, and all that is never seen: zero widths,
 * fillers, variation selectors, tags. They forge lines, drive terminals, and hide text or make it look like another.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** All hidden characters except the end of a line. */
const HIDDEN_IN_LINES = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** Most texts are plain, and cost one look. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * What a peer chose or wrote, made fit for one line of a log, a message or a report: it can neither forge a line of its own
 * nor drive the terminal it is shown on, and everything that is there is seen. Longer text is cut to `maxLength` characters.
 */
export function toPrintable(text: string, maxLength: number): string {
  const clean = printableLine(text).trim();
  return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength)}…`;
}

/** Makes a text fit for one line, whatever its length; see `toPrintable`. */
export function printableLine(text: string): string {
  if (PLAIN.test(text)) return text;
  return stripVTControlCharacters(text).replaceAll('\t', ' ').replace(HIDDEN, '');
}

/** Makes a text of several lines printable, in which peers are quoted; its line breaks stay. */
export function printableLines(text: string): string {
  if (PLAIN.test(text)) return text;
  return stripVTControlCharacters(text).replaceAll('\t', ' ').replace(HIDDEN_IN_LINES, '');
}

/** JSON that means the same, and shows what is hidden in its strings as escapes. */
export function escapeHidden(json: string): string {
  return json.replace(HIDDEN_IN_LINES, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      const unit = character.charCodeAt(index);
      return `\\u${unit.toString(16).padStart(4, '0')}`;
    }).join(''),
  );
}

/**
 * A name that a peer or a file has chosen, in which everything is seen: what is hidden stands there as its code, as in
 * `admin\\u{200b}`. Two names that differ look different.
 */
export function showHidden(name: string): string {
  if (PLAIN.test(name)) return name;
  return name.replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** What is behind these names in a text, after a colon or an equals sign. */
const NAMED_SECRET =
  /((?:key|token|secret|passw(?:or)?d|passphrase|credentials?)[\w-]{0,40}["']?\s{0,3}[:=]\s{0,3}["']?)[^\s"',;]+/gi;
const AUTHORIZATION = /\b(bearer|basic)\s{1,3}[^\s"',;]+/gi;
const USER_OF_URL = /\/\/[^\s/@]+@/g;
/** How the keys of well-known services begin. */
const KNOWN_KEY = /\b(?:sk|pk|rk|gh[a-z]|github_pat|glpat|xox[a-z]|npm|hf|AKIA|ASIA|AIza|ya29|eyJ)[-_.A-Za-z0-9]{8,}/g;
/** A word with digits is longer than this only if it is a key, an id or a number. */
const LONG_WORD = /[A-Za-z0-9]{12,}/g;

/**
 * A text that a server wrote for whoever runs it, made fit to be told to others: `…` stands for what looks like a
 * credential. No rule knows all of them, so such texts are told only where they are needed.
 */
export function hideSecrets(text: string): string {
  return text
    .replace(USER_OF_URL, '//…@')
    .replace(AUTHORIZATION, '$1 …')
    .replace(NAMED_SECRET, '$1…')
    .replace(KNOWN_KEY, '…')
    .replace(LONG_WORD, (word) => (/\d/.test(word) ? '…' : word));
}
