import { DIGIT_0, DIGIT_9, MINUS, QUOTE } from './json/ascii.ts';
import { decodeString } from './json/scan-json.ts';

/** 2^53 has 16 digits; a longer number cannot be a safe integer. */
const MAX_ID_DIGITS = 16;

/**
 * Decodes an id token. Strings are compared decoded, so `"é"` and `"\u00e9"` are the same id. Numbers must be plain
 * integers that a double holds exactly; any other number could come back as a different id.
 */
export function decodeId(bytes: Buffer, start: number, end: number): string | number | undefined {
  if (bytes[start] === QUOTE) return decodeString(bytes, start, end);
  const negative = bytes[start] === MINUS;
  const digits = negative ? start + 1 : start;
  if (end === digits || end - digits > MAX_ID_DIGITS) return undefined;
  let value = 0;
  for (let at = digits; at < end; at++) {
    const byte = bytes[at] as number; // within the token
    if (byte < DIGIT_0 || byte > DIGIT_9) return undefined;
    value = value * 10 + (byte - DIGIT_0);
  }
  // Sixteen digits may round, but never from above 2^53-1 to at or below it.
  if (value > Number.MAX_SAFE_INTEGER) return undefined;
  return negative ? 0 - value : value;
}

/** An integer written with a fraction or an exponent, such as 5.0 or 5e0. */
const LOOSE_INTEGER = /^-?\d{1,16}(?:\.0{1,16})?(?:[eE][+-]?\d{1,2})?$/;
/** Tokens that match are never longer. */
const MAX_LOOSE_ID_BYTES = 40;

/**
 * Decodes the id of a server that writes 5.0 for 5, as languages with a single number type do. The id equals the one
 * that was sent.
 */
export function decodeLooseId(bytes: Buffer, start: number, end: number): number | undefined {
  if (end - start > MAX_LOOSE_ID_BYTES) return undefined;
  const token = bytes.toString('latin1', start, end);
  const value = Number(token);
  return LOOSE_INTEGER.test(token) && Number.isSafeInteger(value) ? value : undefined;
}
