/**
 * Cuts a string of a JSON text without decoding it. Lengths are those of the decoded text in UTF-8, so that escapes
 * count as the characters that they stand for.
 */
import { BACKSLASH } from './ascii.ts';
import { escapedUnit, type Span } from './scan-json.ts';

export interface StringCut {
  /** The offset, inside the quotes, at which the kept part ends. */
  readonly at: number;
  /** Bytes of the whole text. */
  readonly fullBytes: number;
  /** Bytes of the kept part. */
  readonly keptBytes: number;
}

/**
 * Finds the place at which the string token `span`, quotes included, has to end so that its text has at most `maxBytes`
 * bytes. The place is between two characters. Undefined if the text is short enough.
 */
export function cutString(bytes: Buffer, { start, end }: Span, maxBytes: number): StringCut | undefined {
  const text = bytes.subarray(start + 1, end - 1);
  // An escape is never shorter than its character.
  if (text.length <= maxBytes) return undefined;
  let keptEnd = -1;
  let keptBytes = 0;
  let fullBytes = 0;
  let at = 0;
  while (at < text.length) {
    const isEscape = text[at] === BACKSLASH;
    const decoded = isEscape ? decodedLength(text, at) : 1;
    if (keptEnd === -1 && fullBytes + decoded > maxBytes) {
      keptEnd = isEscape ? at : characterStart(text, 0, at);
      keptBytes = fullBytes + keptEnd - at;
    }
    fullBytes += decoded;
    at += isEscape ? writtenLength(text, at, decoded) : 1;
  }
  return keptEnd === -1 ? undefined : { at: start + 1 + keptEnd, fullBytes, keptBytes };
}

/** Returns the start of the character that the byte at `offset` belongs to, which is not before `from`. */
export function characterStart(text: Buffer, from: number, offset: number): number {
  let at = offset;
  // Bytes of this form continue a character, of which they are at most three.
  while (at > from && offset - at < 3 && ((text[at] ?? 0) & 0xc0) === 0x80) at--;
  return at;
}

const LOWER_U = 0x75;

/** Returns the length in UTF-8 of the character that the escape at `at` stands for. A surrogate pair is one character. */
function decodedLength(text: Buffer, at: number): number {
  const unit = escapedUnit(text, at + 1);
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return isBetween(unit, 0xd800, 0xdbff) && isLowSurrogate(text, at + 6) ? 4 : 3;
}

function isLowSurrogate(text: Buffer, at: number): boolean {
  return text[at] === BACKSLASH && isBetween(escapedUnit(text, at + 1), 0xdc00, 0xdfff);
}

function isBetween(unit: number, first: number, last: number): boolean {
  return unit >= first && unit <= last;
}

/** Returns the bytes of the escape at `at`, or of both if two stand for one character. */
function writtenLength(text: Buffer, at: number, decoded: number): number {
  if (text[at + 1] !== LOWER_U) return 2;
  return decoded === 4 ? 12 : 6;
}
