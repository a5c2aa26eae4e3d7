import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  DIGIT_0,
  DIGIT_9,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from './ascii.ts';
import type { Outline } from './outline.ts';
import { skipWhitespace } from './scan-json.ts';

export interface JsonLimits {
  /** Levels of arrays and objects; `[]` has one. */
  readonly maxDepth: number;
  /** Limit of values, including nested ones. */
  readonly maxValues: number;
}

/**
 * For `too-deep` and `too-many` the text before the level or value that exceeds the limit is valid JSON; the rest was
 * not checked.
 */
export type JsonCheck = 'valid' | 'invalid' | 'too-deep' | 'too-many';

/**
 * Checks that the text is one JSON value, without whitespace before it. [RFC 8259] Builds nothing, so a hostile text
 * costs no more than a harmless one: time is linear in its length, memory in its depth. Does not check that strings are
 * valid UTF-8.
 *
 * @param outline records the outer members during the check; its content is meaningless if the text is invalid
 */
export function checkJson(bytes: Buffer, { maxDepth, maxValues }: JsonLimits, outline?: Outline): JsonCheck {
  const runs = bytes.length < SHORT_BYTES ? undefined : new StringRuns(bytes);
  /** The closing bytes of the open arrays and objects, in the first `depth` entries. */
  const open: number[] = [];
  let depth = 0;
  /** The closing byte of the innermost array or object; 0 outside of all. */
  let closing = 0;
  let at = 0;
  let values = 0;
  for (;;) {
    values += 1;
    if (values > maxValues) return 'too-many';
    const first = byteAt(bytes, at);
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (depth === maxDepth) return 'too-deep';
      const close = first === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      at = toToken(bytes, at + 1);
      if (byteAt(bytes, at) !== close) {
        open[depth] = close;
        depth += 1;
        closing = close;
        if (close === CLOSE_BRACE) {
          const keyStart = at;
          at = checkKey(bytes, runs, keyStart);
          outline?.memberBegins(depth, keyStart, at);
        }
        if (at === -1) return 'invalid';
        continue;
      }
      at += 1;
    } else {
      at = first === QUOTE ? checkString(bytes, runs, at) : checkScalar(bytes, at);
      if (at === -1) return 'invalid';
    }
    if (closing === CLOSE_BRACE) outline?.memberEnds(depth, at);
    at = toToken(bytes, at);
    while (depth > 0 && byteAt(bytes, at) === closing) {
      depth -= 1;
      closing = depth === 0 ? 0 : (open[depth - 1] as number);
      if (closing === CLOSE_BRACE) outline?.memberEnds(depth, at + 1);
      at = toToken(bytes, at + 1);
    }
    if (depth === 0) {
      if (at < bytes.length) return 'invalid';
      return 'valid';
    }
    if (byteAt(bytes, at) !== COMMA) return 'invalid';
    at = toToken(bytes, at + 1);
    if (closing === CLOSE_BRACE) {
      const keyStart = at;
      at = checkKey(bytes, runs, keyStart);
      outline?.memberBegins(depth, keyStart, at);
    }
    if (at === -1) return 'invalid';
  }
}

/** Returns -1 after the end, because an index out of bounds is slower than a comparison. */
function byteAt(bytes: Buffer, at: number): number {
  return at < bytes.length ? (bytes[at] as number) : -1;
}

/** Skips whitespace, which most JSON texts do not have between tokens. */
function toToken(bytes: Buffer, at: number): number {
  return byteAt(bytes, at) > SPACE ? at : skipWhitespace(bytes, at);
}

// Each function below returns the offset after the token it checks, or -1 if the token is invalid.

/** Checks a key and its colon. Returns the offset of the value. */
function checkKey(bytes: Buffer, runs: StringRuns | undefined, pos: number): number {
  if (byteAt(bytes, pos) !== QUOTE) return -1;
  const end = checkString(bytes, runs, pos);
  if (end === -1) return -1;
  const colon = toToken(bytes, end);
  return byteAt(bytes, colon) === COLON ? toToken(bytes, colon + 1) : -1;
}

/** @param pos of the opening quote */
function checkString(bytes: Buffer, runs: StringRuns | undefined, pos: number): number {
  let at = pos + 1;
  for (;;) {
    at = runs === undefined ? endOfRun(bytes, at) : runs.endOf(at);
    const byte = byteAt(bytes, at);
    if (byte === QUOTE) return at + 1;
    if (byte !== BACKSLASH) return -1;
    at = checkEscape(bytes, at + 1);
    if (at === -1) return -1;
  }
}

const LOWER_U = 0x75;
/** 1 for each byte that can follow a backslash, except `u`. A call into native code would cost more. */
const SIMPLE_ESCAPES = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) SIMPLE_ESCAPES[byte] = 1;

/** `pos` is after the backslash. */
function checkEscape(bytes: Buffer, pos: number): number {
  const byte = byteAt(bytes, pos);
  if (byte === LOWER_U) return isHex(bytes, pos + 1) ? pos + 5 : -1;
  return byte !== -1 && SIMPLE_ESCAPES[byte] === 1 ? pos + 1 : -1;
}

function isHex(bytes: Buffer, pos: number): boolean {
  for (let at = pos; at < pos + 4; at += 1) {
    const byte = byteAt(bytes, at);
    // 0x20 makes a capital letter a small one.
    if (!isDecimal(byte) && ((byte | 0x20) < 0x61 || (byte | 0x20) > 0x66)) return false;
  }
  return true;
}

const LITERALS: readonly Buffer[] = ['true', 'false', 'null'].map((literal) => Buffer.from(literal));
const DOT = 0x2e;
const PLUS = 0x2b;
const LOWER_E = 0x65;

/** A literal or a number. */
function checkScalar(bytes: Buffer, pos: number): number {
  const first = byteAt(bytes, pos);
  if (first === MINUS || isDecimal(first)) return checkNumber(bytes, pos);
  for (const literal of LITERALS) {
    if (first !== literal[0]) continue;
    for (let index = 1; index < literal.length; index += 1)
      if (byteAt(bytes, pos + index) !== literal[index]) return -1;
    return pos + literal.length;
  }
  return -1;
}

function checkNumber(bytes: Buffer, pos: number): number {
  const start = byteAt(bytes, pos) === MINUS ? pos + 1 : pos;
  let at = byteAt(bytes, start) === DIGIT_0 ? start + 1 : skipDigits(bytes, start);
  if (at === start) return -1;
  let byte = byteAt(bytes, at);
  if (byte === DOT) {
    const fraction = at + 1;
    at = skipDigits(bytes, fraction);
    if (at === fraction) return -1;
    byte = byteAt(bytes, at);
  }
  if ((byte | 0x20) === LOWER_E) {
    const sign = byteAt(bytes, at + 1);
    const exponent = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = skipDigits(bytes, exponent);
    if (at === exponent) return -1;
  }
  return at;
}

function skipDigits(bytes: Buffer, pos: number): number {
  let at = pos;
  while (at < bytes.length && isDecimal(bytes[at] as number)) at += 1;
  return at;
}

function isDecimal(byte: number): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_9;
}

/**
 * Shorter texts are read byte by byte: preparing to read words would take a fifth of the time to check a usual call.
 */
const SHORT_BYTES = 512;
/** Bytes of a run that are read singly before the run is treated as long. */
const NEAR_BYTES = 8;

/** 1 for each byte that interrupts the plain content of a JSON string: a quote, a backslash, a control character. */
const ENDS_RUN = new Uint8Array(256);
ENDS_RUN.fill(1, 0, SPACE);
ENDS_RUN[QUOTE] = 1;
ENDS_RUN[BACKSLASH] = 1;

/** Returns the end of a run of plain bytes in a string, for short texts. */
function endOfRun(bytes: Buffer, pos: number): number {
  const { length } = bytes;
  let at = pos;
  while (at < length && ENDS_RUN[bytes[at] as number] === 0) at += 1;
  return at;
}

/** Finds the ends of such runs in longer texts, reading long runs four bytes at a time. */
export class StringRuns {
  readonly #bytes: Buffer;
  /** The aligned part of the bytes, which begins at `#lead`. */
  readonly #words: Int32Array;
  readonly #lead: number;

  constructor(bytes: Buffer) {
    const { buffer, byteOffset, length } = bytes;
    this.#bytes = bytes;
    this.#lead = (4 - (byteOffset & 3)) & 3;
    this.#words = new Int32Array(buffer, byteOffset + this.#lead, (length - this.#lead) >> 2);
  }

  /** The first offset at or after `pos` that holds a quote, a backslash or a control character; else the length. */
  endOf(pos: number): number {
    const bytes = this.#bytes;
    const words = this.#words;
    const lead = this.#lead;
    const length = bytes.length;
    let at = pos;
    const near = Math.min(lead + ((pos - lead + NEAR_BYTES + 3) & ~3), length);
    for (; at < near; at += 1) if (ENDS_RUN[bytes[at] as number] === 1) return at;
    let index = (at - lead) >> 2;
    while (index < words.length && !holdsEnd(words[index] as number)) index += 1;
    at = Math.max(at, lead + index * 4);
    while (at < length && ENDS_RUN[bytes[at] as number] === 0) at += 1;
    return at;
  }
}

/**
 * Returns true if any of the four bytes ends a run. Subtracting n from each byte borrows into its top bit if the byte
 * is below n and the bit was clear. Inverting the second lowest bit maps the quote and the bytes below 0x20 to the
 * bytes below 0x21.
 */
function holdsEnd(word: number): boolean {
  const quoteOrControl = (word ^ 0x02020202) - 0x21212121;
  const backslash = (word ^ 0x5c5c5c5c) - 0x01010101;
  return ((quoteOrControl | backslash) & ~word & 0x80808080) !== 0;
}
