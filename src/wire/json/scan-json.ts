/**
 * Walkers over the bytes of a JSON text. They find where things are and build nothing.
 * They expect valid JSON. On anything else they answer with meaningless offsets or -1, but never throw, never loop
 * for ever, never read in more than linear time and never recurse.
 */
import { BACKSLASH, CLOSE_BRACE, COLON, COMMA, CR, LF, OPEN_BRACE, OPEN_BRACKET, QUOTE, SPACE, TAB } from './ascii.ts';

/** bytes[start, end). */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Puts `replacement` where bytes[start, end) were; start === end inserts. */
export interface Edit extends Span {
  readonly replacement: Buffer;
}

/** Up to here a loop beats the call into native indexOf. */
const NEAR_BYTES = 16;

/** `[` and `{` differ in one bit only, as do `]` and `}`: setting it halves the comparisons in the loops below. */
const BRACE_BIT = OPEN_BRACE ^ OPEN_BRACKET;

const ENDS_SCALAR = new Uint8Array(256);
for (const byte of Buffer.from(',]} \t\r\n')) ENDS_SCALAR[byte] = 1;

/**
 * What each byte outside of strings does to the depth: one step down or up, or a string begins. One lookup and one addition
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

/** The first offset at or after `pos` that holds no whitespace; the buffer's length when there is none. */
export function skipWhitespace(bytes: Buffer, pos: number): number {
  // Mostly there is none.
  if ((bytes[pos] as number) > SPACE) return pos;
  let at = pos;
  while (isWhitespace(bytes[at])) at++;
  return at;
}

/**
 * Makes one line of a JSON text, in place: every CR and LF becomes a space. JSON strings hold neither raw, so in valid
 * JSON only the space between tokens changes. The caller must own the buffer. Returns it.
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

/** `pos` is at the opening quote. Returns the offset after the closing one, -1 when the buffer ends before it. */
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

/** `from` is at no escaped byte, so an odd run of backslashes between it and the quote escapes the quote. */
function isEscaped(bytes: Buffer, from: number, quote: number): boolean {
  let at = quote - 1;
  while (at >= from && bytes[at] === BACKSLASH) at--;
  return ((quote - 1 - at) & 1) === 1;
}

/**
 * `pos` is at the first byte of a value. Returns the offset after it, -1 when it runs off the buffer or is empty.
 * A number or literal has no closing byte: the end of the buffer ends it.
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

/** Does any value lie deeper than `maxDepth` arrays and objects? `[]` has depth 1. Walks only if it could be so. */
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

/** Does the text have more values than this, those within others counted? Walks only if it could be so. */
export function holdsMoreThan(bytes: Buffer, maxValues: number): boolean {
  // A value has a byte of its own, and another one that keeps it apart from the next.
  return bytes.length >= 2 * maxValues && countValues(bytes, maxValues) > maxValues;
}

/**
 * How many values the text has, those within others counted, and empty arrays and objects twice; some number beyond `limit`
 * where it has more than that.
 */
export function countValues(bytes: Buffer, limit: number): number {
  // Each but the first follows upon a comma, or is the first one within another.
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

/** Decodes the string token bytes[start, end) with its quotes; undefined when its escapes are not JSON. */
export function decodeString(bytes: Buffer, start: number, end: number): string | undefined {
  const text = bytes.toString('utf8', start + 1, end - 1);
  if (!text.includes('\\')) return text;
  try {
    return JSON.parse(`"${text}"`) as string; // a JSON text in quotes is a string
  } catch {
    return undefined;
  }
}

/** The one of these texts that the string token bytes[start, end) is, however it is spelled. */
export function findText(bytes: Buffer, start: number, end: number, texts: readonly string[]): string | undefined {
  for (const text of texts) if (isStringToken(bytes, start, end, text)) return text;
  return undefined;
}

/**
 * Is the string token bytes[start, end) the text `expected`, however it is spelled? Compares character by character, and
 * decodes none after the first that differs: a peer can send a million keys, each spelled with escapes.
 */
export function isStringToken(bytes: Buffer, start: number, end: number, expected: string): boolean {
  const last = end - 1;
  // No character is shorter than one byte.
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
      // Two units of UTF-16 make one character.
      if (point > 0xffff) index += 1;
    }
  }
  return at === last;
}

/** The offset after this character beyond ASCII in UTF-8; -1 where another one stands. */
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
/** What stands for each byte after a backslash; 0 where that is no escape. */
const ESCAPED_UNITS = new Uint8Array(256);
for (const pair of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t']) {
  ESCAPED_UNITS[pair.charCodeAt(0)] = pair.charCodeAt(1);
}

/** The unit of UTF-16 that a string token begins with; of a character beyond ASCII some unit beyond ASCII. */
export function firstUnit(bytes: Buffer, start: number): number {
  const byte = bytes[start + 1] ?? -1;
  return byte === BACKSLASH ? escapedUnit(bytes, start + 2) : byte;
}

/** The unit of UTF-16 that an escape stands for, whose backslash is before `pos`; -1 where it is none. */
function escapedUnit(bytes: Buffer, pos: number): number {
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
 * Takes one member of an object: its key with the quotes, and its value, whose end is -1 where it runs off the buffer.
 * False: no more members are wanted.
 */
export type TakeMember = (keyStart: number, keyEnd: number, valueStart: number, valueEnd: number) => boolean;

/**
 * Goes over the members of the object at `objectStart` in their order. Returns the offset after its closing brace; -1
 * when that was not reached, because the bytes end or go wrong before it or `take` wants no more.
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
 * Goes over the members of one object as `walkMembers` does, for those who need not know where every value ends:
 * `while (members.next()) { … members.keyStart, keyEnd, valueStart, valueEnd() … }`.
 */
export class MemberCursor {
  #bytes: Buffer;
  #objectStart: number;
  #valueEnd = -1;
  /** The key with its quotes. */
  keyStart = -1;
  keyEnd = -1;
  valueStart = -1;
  /** Offset after the object's closing brace once it was reached; stays -1 when the bytes end or go wrong before it. */
  objectEnd = -1;

  constructor(bytes: Buffer, objectStart: number) {
    this.#bytes = bytes;
    this.#objectStart = objectStart;
  }

  /** Begins with another object. */
  restart(bytes: Buffer, objectStart: number): void {
    this.#bytes = bytes;
    this.#objectStart = objectStart;
    this.#valueEnd = -1;
    this.keyStart = -1;
    this.keyEnd = -1;
    this.valueStart = -1;
    this.objectEnd = -1;
  }

  /** On to the next member, if there is one. Walks over the current value unless `valueEnd` did already. */
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

  /** Offset after the current value; -1 when it runs off the buffer. */
  valueEnd(): number {
    if (this.#valueEnd === -1) this.#valueEnd = skipValue(this.#bytes, this.valueStart);
    return this.#valueEnd;
  }

  /** The current value ends there, as was found by walking over it. */
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
