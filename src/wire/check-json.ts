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
import { skipWhitespace } from './scan-json.ts';

/** `too-deep`: what comes before the level that is one too many is JSON; the rest was not looked at. */
export type JsonCheck = 'valid' | 'invalid' | 'too-deep';

/**
 * Is this one JSON value, without whitespace before it? [RFC 8259] Builds nothing, so that it costs a hostile text no
 * more than a harmless one: time is linear in its length, memory in its depth. Whether strings are UTF-8 is not checked.
 * @param maxDepth levels of arrays and objects; `[]` has one
 */
export function checkJson(bytes: Buffer, maxDepth: number): JsonCheck {
  const strings = new StringChecker(bytes);
  /** What closes each array and object that is open. */
  const open: number[] = [];
  let at = 0;
  for (;;) {
    const first = bytes[at];
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (open.length === maxDepth) return 'too-deep';
      const close = first === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      at = skipWhitespace(bytes, at + 1);
      if (bytes[at] !== close) {
        open.push(close);
        if (close === CLOSE_BRACE) at = strings.checkKey(at);
        if (at === -1) return 'invalid';
        continue;
      }
      at += 1;
    } else {
      at = first === QUOTE ? strings.check(at) : checkScalar(bytes, at);
      if (at === -1) return 'invalid';
    }
    at = skipWhitespace(bytes, at);
    while (open.length > 0 && bytes[at] === open[open.length - 1]) {
      open.pop();
      at = skipWhitespace(bytes, at + 1);
    }
    if (open.length === 0) return at === bytes.length ? 'valid' : 'invalid';
    if (bytes[at] !== COMMA) return 'invalid';
    at = skipWhitespace(bytes, at + 1);
    if (open[open.length - 1] === CLOSE_BRACE) at = strings.checkKey(at);
    if (at === -1) return 'invalid';
  }
}

/** Up to here a loop over a string beats the calls into native code. */
const NEAR_BYTES = 32;
/** From here on it pays to look for control characters first. */
const LONG_BYTES = 1024;

/** Strings of one text. Each method returns the offset after what it is for, -1 where that is not there. */
class StringChecker {
  readonly #bytes: Buffer;
  /** No control character anywhere, so that a long string need only be searched for quotes and backslashes. */
  readonly #isClean: boolean;
  /** The first backslash at or after all that was checked so far; found once, however many strings lie before it. */
  #nextBackslash = -1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#isClean = bytes.length >= LONG_BYTES && !hasControls(bytes);
  }

  /** A key and its colon; what comes after it is the value. */
  checkKey(pos: number): number {
    const bytes = this.#bytes;
    if (bytes[pos] !== QUOTE) return -1;
    const end = this.check(pos);
    if (end === -1) return -1;
    const colon = skipWhitespace(bytes, end);
    return bytes[colon] === COLON ? skipWhitespace(bytes, colon + 1) : -1;
  }

  /** @param pos of the opening quote */
  check(pos: number): number {
    const bytes = this.#bytes;
    let at = pos + 1;
    /** The first quote at or after `at`; those that escapes make part of the string lie before it. */
    let quote = -1;
    let near = this.#isClean ? Math.min(at + NEAR_BYTES, bytes.length) : bytes.length;
    for (;;) {
      while (at < near) {
        const byte = bytes[at] as number; // at < near, which is within the bytes
        if (byte === QUOTE) return at + 1;
        if (byte < SPACE) return -1;
        if (byte !== BACKSLASH) at += 1;
        else {
          at = checkEscape(bytes, at + 1);
          if (at === -1) return -1;
        }
      }
      if (at >= bytes.length) return -1;
      if (quote < at) quote = bytes.indexOf(QUOTE, at);
      if (quote === -1) return -1;
      if (quote < this.#backslashFrom(at)) return quote + 1;
      at = this.#nextBackslash;
      near = Math.min(at + NEAR_BYTES, bytes.length);
    }
  }

  #backslashFrom(at: number): number {
    if (this.#nextBackslash < at) {
      const found = this.#bytes.indexOf(BACKSLASH, at);
      this.#nextBackslash = found === -1 ? this.#bytes.length : found;
    }
    return this.#nextBackslash;
  }
}

/** Any byte below 0x20? Four at a time: where one is, subtracting 0x20 from each borrows into a top bit that was clear. */
function hasControls(bytes: Buffer): boolean {
  const lead = Math.min((4 - (bytes.byteOffset & 3)) & 3, bytes.length);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset + lead, (bytes.length - lead) >> 2);
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] as number; // index < words.length
    if (((word - 0x20202020) & ~word & 0x80808080) !== 0) return true;
  }
  const tail = lead + words.length * 4;
  for (let at = 0; at < lead; at += 1) if ((bytes[at] as number) < SPACE) return true;
  for (let at = tail; at < bytes.length; at += 1) if ((bytes[at] as number) < SPACE) return true;
  return false;
}

const LOWER_U = 0x75;
/** 1 for each byte that makes an escape with the backslash before it. A call into native code would cost more. */
const SIMPLE_ESCAPES = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) SIMPLE_ESCAPES[byte] = 1;

/** `pos` is after the backslash. */
function checkEscape(bytes: Buffer, pos: number): number {
  const byte = bytes[pos];
  if (byte === LOWER_U) return isHex(bytes, pos + 1) ? pos + 5 : -1;
  return byte !== undefined && SIMPLE_ESCAPES[byte] === 1 ? pos + 1 : -1;
}

function isHex(bytes: Buffer, pos: number): boolean {
  for (let at = pos; at < pos + 4; at += 1) {
    const byte = bytes[at];
    // 0x20 makes a capital letter a small one.
    const isDigit = byte !== undefined && (isDecimal(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66));
    if (!isDigit) return false;
  }
  return true;
}

const LITERALS: readonly Buffer[] = ['true', 'false', 'null'].map((literal) => Buffer.from(literal));
const DOT = 0x2e;
const PLUS = 0x2b;
const LOWER_E = 0x65;

/** A literal or a number. Returns the offset after it, -1 when it is neither. */
function checkScalar(bytes: Buffer, pos: number): number {
  const first = bytes[pos];
  if (first === MINUS || isDecimal(first)) return checkNumber(bytes, pos);
  for (const literal of LITERALS) {
    if (first !== literal[0]) continue;
    for (let index = 1; index < literal.length; index += 1) if (bytes[pos + index] !== literal[index]) return -1;
    return pos + literal.length;
  }
  return -1;
}

function checkNumber(bytes: Buffer, pos: number): number {
  const start = bytes[pos] === MINUS ? pos + 1 : pos;
  let at = bytes[start] === DIGIT_0 ? start + 1 : skipDigits(bytes, start);
  if (at === start) return -1;
  if (bytes[at] === DOT) {
    const fraction = at + 1;
    at = skipDigits(bytes, fraction);
    if (at === fraction) return -1;
  }
  if (((bytes[at] ?? 0) | 0x20) === LOWER_E) {
    const sign = bytes[at + 1];
    const exponent = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = skipDigits(bytes, exponent);
    if (at === exponent) return -1;
  }
  return at;
}

function skipDigits(bytes: Buffer, pos: number): number {
  let at = pos;
  while (isDecimal(bytes[at])) at += 1;
  return at;
}

function isDecimal(byte: number | undefined): boolean {
  return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9;
}
