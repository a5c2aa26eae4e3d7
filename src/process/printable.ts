import { stripVTControlCharacters } from 'node:util';

/** Control characters, line separators and the marks that turn the reading direction. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * What a child wrote, made fit for one line of a log or message: it can neither forge a line of its own nor drive the
 * terminal it is shown on. Longer text is cut to `maxLength` characters.
 */
export function toPrintable(text: string, maxLength: number): string {
  const clean = stripVTControlCharacters(text).replaceAll('\t', ' ').replace(UNPRINTABLE, '').trim();
  return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength)}…`;
}
