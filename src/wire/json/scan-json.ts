/**
 * Scanners over the bytes of a JSON text. They find positions and build nothing. They expect valid JSON. For anything
 * else they return meaningless offsets or -1, but never throw, never loop forever, never take more than linear time
 * and never recurse.
 */
import { BACKSLASH, CLOSE_BRACE, COLON, COMMA, CR, LF, OPEN_BRACE, OPEN_BRACKET, QUOTE, SPACE, TAB } from './ascii.ts';

/** bytes[start, end). */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Replaces bytes[start, end) by `replacement`; start === end inserts. */
export interface Edit extends Span {
  readonly replacement: Buffer;
}

/** Over so few bytes a loop is faster than a call of native indexOf. */
const NEAR_BYTES = 16;

/** `[` and `{` differ in one bit only, as do `]` and `}`: setting it halves the comparisons in the loops below. */
const BRACE_BIT = OPEN_BRACE ^ OPEN_BRACKET;

const ENDS_SCALAR = new Uint8Array(256);
for (const byte of Buffer.from(',]} \t\r\n')) ENDS_SCALAR[byte] = 1;

/**
 * The change of depth for each byte outside of strings, or `STRING_BEGINS` for a quote. A table lookup and an addition
 * take half the time of comparing with each bracket.
 */
const STRING_BEGINS = 2;
const DEPTH_STEPS = new Int8Array(256);
for (const byte of Buffer.from('[{')) DEPTH_STEPS[byte] = 1;
for (const byte of Buffer.from(']}')) DEPTH_STEPS[byte] = -1;
DEPTH_STEPS[QUOTE] = STRING_BEGINS;

export function isWhitespace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LF || byte === CR || byte === TAB;
}

/** Returns the first offset at or after `pos` without whitespace, or the buffer's length. */
export function skipWhitespace(bytes: Buffer, pos: number): number {
  // Fast path: usually there is no whitespace.
  if ((bytes[pos] as number) > SPACE) return pos;
  let at = pos;
  while (isWhitespace(bytes[at])) at++;
  return at;
}

/**
 * Converts a JSON text to one line, in place: every CR and LF becomes a space. JSON strings contain neither raw, so
 * only whitespace between tokens changes. The caller must own the buffer. Returns the same buffer.
 */
export function toOneLine(bytes: Buffer): Buffer {
  const firstLf = bytes.indexOf(LF);
  const firstCr = bytes.indexOf(CR);
  if (firstLf === -1 && firstCr === -1) return bytes;
  const first = firstLf === -1 || (firstCr !== -1 && firstCr < firstLf) ? firstCr : firstLf;
  for (let at = first; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === LF || byte === CR) bytes[at] = SPACE;
  }
  return bytes;
}

/**
 * Skips the string whose opening quote is at `pos`. Returns the offset after its closing quote, or -1 if the buffer
 * ends first.
 */
export function skipString(bytes: Buffer, pos: number): number {
  const length = bytes.length;
  let at = pos + 1;
  while (at < length) {
    // Most strings are short, and where one quote is escaped the next one is near.
    const near = Math.min(at + NEAR_BYTES, length);
    while (at < near) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      at += byte === BACKSLASH ? 2 : 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return -1;
    if (!isEscaped(bytes, at, quote)) return quote + 1;
    at = quote + 1;
  }
  return -1;
}

/** Returns true if an odd number of backslashes precedes the quote. The byte at `from` must not be escaped itself. */
function isEscaped(bytes: Buffer, from: number, quote: number): boolean {
  let at = quote - 1;
  while (at >= from && bytes[at] === BACKSLASH) at--;
  return ((quote - 1 - at) & 1) === 1;
}

/**
 * Skips the value at `pos`. Returns the offset after it, or -1 if it is empty or the buffer ends first. A number or
 * literal has no closing byte, so the end of the buffer also ends it.
 */
export function skipValue(bytes: Buffer, pos: number): number {
  const first = bytes[pos];
  if (first === QUOTE) return skipString(bytes, pos);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipNested(bytes, pos);
  return skipScalar(bytes, pos);
}

function skipNested(bytes: Buffer, pos: number): number {
  const length = bytes.length;
  let depth = 0;
  let at = pos;
  while (at < length) {
    const step = DEPTH_STEPS[bytes[at] as number] as number; // at < length; 256 entries
    if (step === 0) at++;
    else if (step === STRING_BEGINS) {
      at = skipString(bytes, at);
      if (at === -1) return -1;
    } else {
      at++;
      depth += step;
      if (depth === 0) return at;
    }
  }
  return -1;
}

function skipScalar(bytes: Buffer, pos: number): number {
  let at = pos;
  while (at < bytes.length && ENDS_SCALAR[bytes[at] as number] === 0) at++;
  return at === pos ? -1 : at;
}

/**
 * Returns true if arrays and objects nest deeper than `maxDepth`; `[]` has depth 1. Scans only texts with enough
 * opening brackets.
 */
export function isDeeperThan(bytes: Buffer, maxDepth: number): boolean {
  if (bytes.length <= maxDepth || countOpenings(bytes, maxDepth + 1) <= maxDepth) return false;
  let depth = 0;
  let at = 0;
  while (at < bytes.length) {
    const step = DEPTH_STEPS[bytes[at] as number] as number; // at < length; 256 entries
    if (step === 0) at++;
    else if (step === STRING_BEGINS) {
      at = skipString(bytes, at);
      if (at === -1) return false;
    } else {
      at++;
      depth += step;
      if (depth > maxDepth) return true;
    }
  }
  return false;
}

/**
 * Returns true if the text has more values than this, including nested ones. Scans only texts long enough for so many.
 */
export function holdsMoreThan(bytes: Buffer, maxValues: number): boolean {
  // A value takes at least one byte, and another one separates it from the next.
  return bytes.length >= 2 * maxValues && countValues(bytes, maxValues) > maxValues;
}

/**
 * Counts the values of a text, including nested ones; empty arrays and objects count twice. Stops at a count above
 * `limit`.
 */
export function countValues(bytes: Buffer, limit: number): number {
  // Each value except the first follows a comma, or is the first one in an array or object.
  let count = 1;
  let at = 0;
  while (at < bytes.length) {
    const byte = bytes[at] as number; // at < length
    if (byte === QUOTE) {
      at = skipString(bytes, at);
      if (at === -1) return count;
      continue;
    }
    at++;
    if (byte !== COMMA && (byte | BRACE_BIT) !== OPEN_BRACE) continue;
    count++;
    if (count > limit) return count;
  }
  return count;
}

/** Counts `{` and `[`, also those in strings, up to `limit`. */
function countOpenings(bytes: Buffer, limit: number): number {
  let count = 0;
  for (const opening of [OPEN_BRACE, OPEN_BRACKET]) {
    let at = bytes.indexOf(opening);
    while (at !== -1 && count < limit) {
      count++;
      at = bytes.indexOf(opening, at + 1);
    }
  }
  return count;
}

/** Decodes the string token bytes[start, end), quotes included. Undefined if its escapes are invalid. */
export function decodeString(bytes: Buffer, start: number, end: number): string | undefined {
  const text = bytes.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  try {
    return JSON.parse(`"${text}"`) as string; // a JSON text in quotes is a string
  } catch {
    return undefined;
  }
}

/** Returns the text among these that equals the string token bytes[start, end), with or without escapes. */
export function findText(bytes: Buffer, start: number, end: number, texts: readonly string[]): string | undefined {
  for (const text of texts) if (isStringToken(bytes, start, end, text)) return text;
  return undefined;
}

/**
 * Returns true if the string token bytes[start, end) decodes to `expected`. Compares character by character and stops
 * at the first difference, because a peer can send a million keys that are all spelled with escapes.
 */
export function isStringToken(bytes: Buffer, start: number, end: number, expected: string): boolean {
  const last = end - 1;
  // A character takes at least one byte.
  if (last - start - 1 < expected.length) return false;
  let at = start + 1;
  for (let index = 0; index < expected.length; index++) {
    if (at >= last) return false;
    const byte = bytes[at] as number; // within the token
    if (byte === BACKSLASH) {
      if (escapedUnit(bytes, at + 1) !== expected.charCodeAt(index)) return false;
      at += bytes[at + 1] === LOWER_U ? 6 : 2;
    } else if (byte < 0x80) {
      if (byte !== expected.charCodeAt(index)) return false;
      at += 1;
    } else {
      const point = expected.codePointAt(index) as number; // index < length
      const after = skipCharacter(bytes, at, point);
      if (after === -1) return false;
      at = after;
      // A code point above 0xffff takes two UTF-16 units.
      if (point > 0xffff) index += 1;
    }
  }
  return at === last;
}

/** Returns the offset after this non-ASCII character in UTF-8, or -1 if the bytes differ. */
function skipCharacter(bytes: Buffer, start: number, point: number): number {
  const length = point < 0x80 ? 0 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (let index = 0; index < length; index++) {
    const bits = point >> (6 * (length - 1 - index));
    const byte = index === 0 ? ((0xf00 >> length) & 0xff) | bits : 0x80 | (bits & 0x3f);
    if (bytes[start + index] !== byte) return -1;
  }
  return length === 0 ? -1 : start + length;
}

const LOWER_U = 0x75;
/** The character for each byte after a backslash; 0 if the escape is invalid. */
const ESCAPED_UNITS = new Uint8Array(256);
for (const pair of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  ESCAPED_UNITS[pair.charCodeAt(0)] = pair.charCodeAt(1);
}

/** The first UTF-16 unit of a string token. For a character beyond ASCII the result is only some value beyond ASCII. */
export function firstUnit(bytes: Buffer, start: number): number {
  const byte = bytes[start + 1] ?? -1;
  return byte === BACKSLASH ? escapedUnit(bytes, start + 2) : byte;
}

/** Decodes the escape whose backslash is before `pos` to a UTF-16 unit, or returns -1 if it is invalid. */
export function escapedUnit(bytes: Buffer, pos: number): number {
  const byte = bytes[pos] ?? 0;
  if (byte !== LOWER_U) return ESCAPED_UNITS[byte] || -1;
  let unit = 0;
  for (let at = pos + 1; at < pos + 5; at++) {
    const digit = HEX_DIGITS[bytes[at] ?? 0] as number; // 256 entries
    if (digit === -1) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

const HEX_DIGITS = new Int8Array(256).fill(-1);
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  HEX_DIGITS[digit.charCodeAt(0)] = value;
  HEX_DIGITS[digit.toUpperCase().charCodeAt(0)] = value;
}

/**
 * Receives one member of an object: its key with the quotes, and its value, whose end is -1 if the buffer ends first.
 * Returns false to end the walk.
 */
export type TakeMember = (keyStart: number, keyEnd: number, valueStart: number, valueEnd: number) => boolean;

/**
 * Visits the members of the object at `objectStart` in their order. Returns the offset after its closing brace, or -1
 * if the object is truncated or malformed or `take` ended the walk.
 */
export function walkMembers(bytes: Buffer, objectStart: number, take: TakeMember): number {
  if (bytes[objectStart] !== OPEN_BRACE) return -1;
  let at = skipWhitespace(bytes, objectStart + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  while (bytes[at] === QUOTE) {
    const keyEnd = skipString(bytes, at);
    const colon = keyEnd === -1 ? -1 : skipWhitespace(bytes, keyEnd);
    if (bytes[colon] !== COLON) return -1;
    const valueStart = skipWhitespace(bytes, colon + 1);
    const valueEnd = skipValue(bytes, valueStart);
    if (!take(at, keyEnd, valueStart, valueEnd) || valueEnd === -1) return -1;
    const next = skipWhitespace(bytes, valueEnd);
    if (bytes[next] === CLOSE_BRACE) return next + 1;
    if (bytes[next] !== COMMA) return -1;
    at = skipWhitespace(bytes, next + 1);
  }
  return -1;
}

/**
 * Visits the members of one object like `walkMembers`, but finds the end of a value only on demand: `while
 * (members.next()) { … members.keyStart, keyEnd, valueStart, valueEnd() … }`.
 */
export class MemberCursor {
  #bytes: Buffer;
  #objectStart: number;
  #valueEnd = -1;
  /** The offset of the key's opening quote. */
  keyStart = -1;
  keyEnd = -1;
  valueStart = -1;
  /**
   * The offset after the object's closing brace once the walk has reached it; -1 before, and if the object is
   * malformed.
   */
  objectEnd = -1;

  constructor(bytes: Buffer, objectStart: number) {
    this.#bytes = bytes;
    this.#objectStart = objectStart;
  }

  /** Starts over with another object. */
  restart(bytes: Buffer, objectStart: number): void {
    this.#bytes = bytes;
    this.#objectStart = objectStart;
    this.#valueEnd = -1;
    this.keyStart = -1;
    this.keyEnd = -1;
    this.valueStart = -1;
    this.objectEnd = -1;
  }

  /**
   * Moves to the next member and returns whether there is one. Skips the current value unless `valueEnd` did already.
   */
  next(): boolean {
    const bytes = this.#bytes;
    const keyStart = this.keyStart === -1 ? this.#firstKey() : this.#followingKey();
    if (bytes[keyStart] !== QUOTE) return false;
    const keyEnd = skipString(bytes, keyStart);
    if (keyEnd === -1) return false;
    const colon = skipWhitespace(bytes, keyEnd);
    if (bytes[colon] !== COLON) return false;
    this.keyStart = keyStart;
    this.keyEnd = keyEnd;
    this.valueStart = skipWhitespace(bytes, colon + 1);
    this.#valueEnd = -1;
    return true;
  }

  /** Returns the offset after the current value, or -1 if the buffer ends first. */
  valueEnd(): number {
    if (this.#valueEnd === -1) this.#valueEnd = skipValue(this.#bytes, this.valueStart);
    return this.#valueEnd;
  }

  /** Records the end of the current value, if the caller has found it itself. */
  passTo(end: number): void {
    this.#valueEnd = end;
  }

  #firstKey(): number {
    if (this.#bytes[this.#objectStart] !== OPEN_BRACE) return -1;
    const at = skipWhitespace(this.#bytes, this.#objectStart + 1);
    if (this.#bytes[at] === CLOSE_BRACE) this.objectEnd = at + 1;
    return at;
  }

  #followingKey(): number {
    const valueEnd = this.valueEnd();
    if (valueEnd === -1) return -1;
    const at = skipWhitespace(this.#bytes, valueEnd);
    const byte = this.#bytes[at];
    if (byte === COMMA) return skipWhitespace(this.#bytes, at + 1);
    if (byte === CLOSE_BRACE) this.objectEnd = at + 1;
    return -1;
  }
}
