/**
 * Finds members of an object by their keys. Code that reads all bytes of a message anyway records the positions of the
 * outer objects' members, so that later lookups need not scan the bytes again.
 */
import { BACKSLASH, OPEN_BRACE, QUOTE } from './ascii.ts';
import {
  decodeString,
  firstUnit,
  isStringToken,
  MemberCursor,
  type Span,
  type TakeMember,
  walkMembers,
} from './scan-json.ts';

/**
 * Members are recorded for the message, its payload and the payload's `_meta`. No other object is searched more than
 * once.
 */
const LEVELS = 3;
const META = '_meta';
const UNDERSCORE = META.charCodeAt(0);

/**
 * Limit of members of a message, its payload and the payload's `_meta` together. Usual messages have a dozen; a tool's
 * arguments are nested deeper and do not count. Each lookup would visit all members, so a client's message with more is
 * rejected, and in a server's large message only the first ones are found.
 */
export const MAX_MEMBERS = 1000;

/** Indexes of the values recorded for each member. */
const LEVEL = 0;
const KEY_START = 1;
const VALUE_START = 2;
export const VALUE_END = 3;
export const NOTES = 4;

/**
 * Positions of a message's outer members. Meaningless if the text turns out not to be JSON. With too many members it
 * has only the first ones, and the objects around the limit have no recorded end.
 */
export class Outline {
  readonly bytes: Buffer;
  /** The notes of all members, each before those of the members nested in it. */
  readonly #notes: number[];
  /** Index of the notes of the last member, by level. */
  readonly #last: number[] = [0, 0, 0, 0];
  /** True while the payload's last member is its `_meta`. */
  #isInMeta = false;
  #holdsMeta: boolean;

  constructor(bytes: Buffer, notes: number[] = []) {
    this.bytes = bytes;
    this.#notes = notes;
    this.#holdsMeta = notes.length > 0;
  }

  get notes(): readonly number[] {
    return this.#notes;
  }

  /** False if the payload certainly has no member `_meta`, also not one spelled with escapes. */
  get mayHoldMeta(): boolean {
    return this.#holdsMeta || !this.isComplete;
  }

  /** False if there are more members than can be recorded. */
  get isComplete(): boolean {
    return this.#notes.length <= MAX_MEMBERS * NOTES;
  }

  /** Returns true if the members of the current member's value are recorded too. */
  notesWithin(level: number): boolean {
    return level < LEVELS - 1 || (level === LEVELS - 1 && this.#isInMeta);
  }

  /** @param level number of objects and arrays around the member */
  memberBegins(level: number, keyStart: number, valueStart: number): void {
    if (level >= LEVELS && (level > LEVELS || !this.#isInMeta)) return;
    if (!this.isComplete) return;
    if (level === LEVELS - 1) {
      this.#isInMeta = isMeta(this.bytes, keyStart, valueStart);
      this.#holdsMeta ||= this.#isInMeta;
    }
    this.#last[level] = this.#notes.length;
    this.#notes.push(level, keyStart, valueStart, -1);
  }

  /** Ends the last member of this level. */
  memberEnds(level: number, end: number): void {
    if (level >= LEVELS && (level > LEVELS || !this.#isInMeta)) return;
    if (this.isComplete) this.#notes[(this.#last[level] as number) + VALUE_END] = end;
  }

  /**
   * Visits members like `walkMembers`, from the recorded positions. Undefined if this object's members are not
   * recorded.
   */
  visitMembers(bytes: Buffer, objectStart: number, take: TakeMember): number | undefined {
    if (bytes[objectStart] !== OPEN_BRACE) return undefined;
    const notes = this.#notes;
    const { isComplete } = this;
    if (objectStart === 0) return this.#visit(0, 1, take) && isComplete ? bytes.length : -1;
    for (let at = 0; at < notes.length; at += NOTES) {
      if (notes[at + VALUE_START] !== objectStart) continue;
      const level = (notes[at + LEVEL] as number) + 1;
      const isNoted =
        level < LEVELS || (level === LEVELS && isMeta(bytes, notes[at + KEY_START] as number, objectStart));
      if (!isNoted) return undefined;
      return this.#visit(at + NOTES, level, take) ? (notes[at + VALUE_END] as number) : -1;
    }
    // Objects after the limit of members are not searched.
    return isComplete ? undefined : -1;
  }

  /**
   * Visits the members of one object, whose notes begin at `first`. False if `take` ended the visit or the last member
   * has no end.
   */
  #visit(first: number, level: number, take: TakeMember): boolean {
    const bytes = this.bytes;
    const notes = this.#notes;
    for (let at = first; at < notes.length; at += NOTES) {
      const own = notes[at + LEVEL] as number;
      if (own > level) continue;
      if (own < level) return true;
      const keyStart = notes[at + KEY_START] as number;
      const valueStart = notes[at + VALUE_START] as number;
      const valueEnd = notes[at + VALUE_END] as number;
      if (valueEnd === -1 || !take(keyStart, endOfKey(bytes, keyStart, valueStart), valueStart, valueEnd)) return false;
    }
    return true;
  }
}

/** Returns true if the members of this member's value are recorded. */
export function notesMembersOf(level: number, bytes: Buffer, keyStart: number, valueStart: number): boolean {
  return level < LEVELS - 1 || (level === LEVELS - 1 && isMeta(bytes, keyStart, valueStart));
}

function isMeta(bytes: Buffer, keyStart: number, valueStart: number): boolean {
  const initial = bytes[keyStart + 1];
  if (initial !== UNDERSCORE && initial !== BACKSLASH) return false;
  return isStringToken(bytes, keyStart, endOfKey(bytes, keyStart, valueStart), META);
}

/** Searches backward, since there is no other quote between a key and its value. */
function endOfKey(bytes: Buffer, keyStart: number, valueStart: number): number {
  let at = valueStart - 1;
  while (at > keyStart && bytes[at] !== QUOTE) at--;
  return at + 1;
}

/** Visits members like `walkMembers`, and uses the outline of the message if there is one. */
export function visitMembers(
  bytes: Buffer,
  objectStart: number,
  outline: Outline | undefined,
  take: TakeMember,
): number {
  return outline?.visitMembers(bytes, objectStart, take) ?? walkMembers(bytes, objectStart, take);
}

/**
 * Creates the outline of the object at the start of these bytes, in one walk. `end` is the object's end, or -1 if the
 * walk found invalid JSON or too many members.
 */
export function walkOutline(bytes: Buffer): { readonly outline: Outline; readonly end: number } {
  const outline = new Outline(bytes);
  return { outline, end: noteMembers(bytes, 0, { level: 1, outline }) };
}

/**
 * The outline of a whole message; undefined if the bytes are no JSON object. With too many members it has the first
 * ones.
 */
export function outlineOf(message: Buffer): Outline | undefined {
  const { outline, end } = walkOutline(message);
  return end === message.length || !outline.isComplete ? outline : undefined;
}

interface Walk {
  readonly level: number;
  readonly outline: Outline;
}

function noteMembers(bytes: Buffer, objectStart: number, { level, outline }: Walk): number {
  const members = new MemberCursor(bytes, objectStart);
  while (members.next()) {
    const { keyStart, valueStart } = members;
    outline.memberBegins(level, keyStart, valueStart);
    if (!outline.isComplete) return -1;
    if (outline.notesWithin(level) && bytes[valueStart] === OPEN_BRACE) {
      const end = noteMembers(bytes, valueStart, { level: level + 1, outline });
      if (end === -1) return -1;
      members.passTo(end);
    }
    outline.memberEnds(level, members.valueEnd());
  }
  return members.objectEnd;
}

// ---- Finding members. Keys are compared where they stand; see isStringToken.

/** The value of the first member called `key` in the object at `objectStart`. */
export function findMember(bytes: Buffer, objectStart: number, key: string, outline?: Outline): Span | undefined {
  let found: Span | undefined;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    if (!isStringToken(bytes, keyStart, keyEnd, key)) return true;
    if (end !== -1) found = { start, end };
    return false;
  });
  return found;
}

/** `duplicate` if the member occurs twice; undefined if it is missing. */
export type UniqueMember = Span | 'duplicate' | undefined;

/**
 * Like findMember, but reads the whole object and detects a key that occurs twice: parsers differ in which of the two
 * they use, so checking one would not protect the other side.
 */
export function findUniqueMember(bytes: Buffer, objectStart: number, key: string, outline?: Outline): UniqueMember {
  let found: UniqueMember;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    if (isStringToken(bytes, keyStart, keyEnd, key)) found = found === undefined ? spanOf(start, end) : 'duplicate';
    return found !== 'duplicate';
  });
  return found;
}

/** Finds several members as `findUniqueMember` does, in one walk; the answers are in the order of the keys. */
export function findUniqueMembers(
  bytes: Buffer,
  objectStart: number,
  keys: readonly string[],
  outline?: Outline,
): UniqueMember[] {
  const found: UniqueMember[] = keys.map(() => undefined);
  const candidates = byInitial(keys);
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    for (const index of candidates[Math.min(firstUnit(bytes, keyStart), BEYOND_ASCII)] ?? []) {
      if (!isStringToken(bytes, keyStart, keyEnd, keys[index] as string)) continue; // one of its indices
      found[index] = found[index] === undefined ? spanOf(start, end) : 'duplicate';
    }
    return true;
  });
  return found;
}

/** The table entry for all keys that start with a character beyond ASCII. */
const BEYOND_ASCII = 0x80;

/** The indices of the keys by their first unit, because few of an object's members begin like a requested key. */
function byInitial(keys: readonly string[]): readonly (readonly number[] | undefined)[] {
  const table: (number[] | undefined)[] = Array.from({ length: BEYOND_ASCII + 1 });
  for (const [index, key] of keys.entries()) {
    // The byte after the opening quote of an empty key is the closing quote.
    const initial = key === '' ? QUOTE : Math.min(key.charCodeAt(0), BEYOND_ASCII);
    const indices = table[initial];
    if (indices === undefined) table[initial] = [index];
    else indices.push(index);
  }
  return table;
}

function spanOf(start: number, end: number): Span | undefined {
  return end === -1 ? undefined : { start, end };
}

// ---- Members that all parsers read alike. Some servers match member names without regard to case (Go's encoding/json
// does), and of two members with one name some take the first, some the last.

/** Setting this bit converts an ASCII letter to lower case. */
const CASE_BIT = 0x20;
const SMALL_A = 0x61;
const SMALL_Z = 0x7a;

/**
 * A member's value; undefined if it is missing. `unclear` if several members could be read as this one, or if the only
 * one is spelled in another case.
 */
export type Unmistakable = Span | 'unclear' | undefined;

/** A message, or bytes without an outline. */
interface MessageText {
  readonly bytes: Buffer;
  readonly outline?: Outline | undefined;
}

/** The value of the member called `key` in the object at `objectStart`. */
export function findUnmistakable({ bytes, outline }: MessageText, objectStart: number, key: string): Unmistakable {
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return undefined;
  let found: Unmistakable;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    const likeness = compareKey(bytes, keyStart, keyEnd, key);
    if (likeness !== 'other') found = foundNext(found, likeness, start, end);
    return found !== 'unclear';
  });
  return found;
}

/** Like `findUnmistakable` for several keys in one walk. The results are in the order of the keys. */
export function findAllUnmistakable(
  { bytes, outline }: MessageText,
  objectStart: number,
  keys: readonly string[],
): Unmistakable[] {
  const found: Unmistakable[] = keys.map(() => undefined);
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return found;
  visitMembers(bytes, objectStart, outline, (keyStart, keyEnd, start, end) => {
    for (let index = 0; index < keys.length; index++) {
      const likeness = compareKey(bytes, keyStart, keyEnd, keys[index] as string); // index < length
      if (likeness !== 'other') found[index] = foundNext(found[index], likeness, start, end);
    }
    return true;
  });
  return found;
}

/** Updates the result for a key with another member that is, or looks like, the requested one. */
function foundNext(
  found: Unmistakable,
  likeness: Exclude<Likeness, 'other'>,
  start: number,
  end: number,
): Unmistakable {
  return likeness === 'look-alike' || found !== undefined ? 'unclear' : { start, end };
}

type Likeness = 'same' | 'look-alike' | 'other';

/**
 * Compares the key token bytes[start, end) with `key`, which must be ASCII. Decodes the token only at the first byte
 * that is escaped or not ASCII; until then each byte is one character.
 */
function compareKey(bytes: Buffer, start: number, end: number, key: string): Likeness {
  const length = end - start - 2;
  const shared = Math.min(length, key.length);
  let likeness: Likeness = 'same';
  for (let index = 0; index < shared; index++) {
    const byte = bytes[start + 1 + index] as number; // within the token
    if (byte === BACKSLASH || byte >= 0x80) return compareDecoded(bytes, start, end, key);
    const expected = key.charCodeAt(index);
    if (byte === expected) continue;
    if (!isOtherCase(byte, expected)) return 'other';
    likeness = 'look-alike';
  }
  return length === key.length ? likeness : 'other';
}

function isOtherCase(byte: number, expected: number): boolean {
  const small = byte | CASE_BIT;
  return (byte ^ expected) === CASE_BIT && small >= SMALL_A && small <= SMALL_Z;
}

function compareDecoded(bytes: Buffer, start: number, end: number, key: string): Likeness {
  if (end - start > 6 * key.length + 2) return 'other';
  const name = decodeString(bytes, start, end);
  if (name === undefined || fold(name) !== fold(key)) return 'other';
  return name === key ? 'same' : 'look-alike';
}

/** Folds the case of a key. Upper case first maps the long s to `S`; lower case then maps the Kelvin sign to `k`. */
export function fold(key: string): string {
  return key.toUpperCase().toLowerCase();
}
