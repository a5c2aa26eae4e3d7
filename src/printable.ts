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
