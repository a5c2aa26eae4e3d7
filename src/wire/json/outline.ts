/**
 * Finds members of an object by their names. Where the members of a message's outer objects stand is noted down by
 * whoever goes over all of its bytes anyway, so that those who look for one of them need not walk over the same bytes
 * again.
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

/** Members are noted of the message, of its payload and of the payload's `_meta`. Nobody looks twice for others. */
const LEVELS = 3;
const META = '_meta';
const UNDERSCORE = META.charCodeAt(0);

/**
 * Members of a message, its payload and the `_meta` of that together. Usual messages have a dozen; what a tool is called
 * with lies deeper and does not count. Each of those who look for a member would have to go over all of them, so a client's
 * message with more is refused, and in a large one of a server only the first ones are found.
 */
export const MAX_MEMBERS = 1000;

/** What is noted of each member, in this order. */
const LEVEL = 0;
const KEY_START = 1;
const VALUE_START = 2;
export const VALUE_END = 3;
export const NOTES = 4;

/**
 * An outline of text that turns out not to be JSON says nothing of use. Where there are too many members it has the first
 * ones, and no object that they stand in has an end.
 */
export class Outline {
  readonly bytes: Buffer;
  /** The notes of all members, each before those within its value. */
  readonly #notes: number[];
  /** For each level the index of the notes of its last member. */
  readonly #last: number[] = [0, 0, 0, 0];
  /** The last member of the payload was its `_meta`. */
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

  /** False: the payload has no member `_meta`, however that may be spelled. */
  get mayHoldMeta(): boolean {
    return this.#holdsMeta || !this.isComplete;
  }

  /** False: there are more members than could be noted. */
  get isComplete(): boolean {
    return this.#notes.length <= MAX_MEMBERS * NOTES;
  }

  /** Are members noted of what is the value of the last member of this level? */
  notesWithin(level: number): boolean {
    return level < LEVELS - 1 || (level === LEVELS - 1 && this.#isInMeta);
  }

  /** @param level how many objects and arrays the member stands in */
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

  /** The last member of this level ends. */
  memberEnds(level: number, end: number): void {
    if (level >= LEVELS && (level > LEVELS || !this.#isInMeta)) return;
    if (this.isComplete) this.#notes[(this.#last[level] as number) + VALUE_END] = end;
  }

  /** Does what `walkMembers` does, by what was noted; undefined: the members of this object were not. */
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
    // What comes after so many members is not looked for.
    return isComplete ? undefined : -1;
  }

  /** The members of one object, whose notes begin at `first`. False: `take` wants no more, or the last has no end. */
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

/** Are members noted of what is the value of a member of this level? */
export function notesMembersOf(level: number, bytes: Buffer, keyStart: number, valueStart: number): boolean {
  return level < LEVELS - 1 || (level === LEVELS - 1 && isMeta(bytes, keyStart, valueStart));
}

function isMeta(bytes: Buffer, keyStart: number, valueStart: number): boolean {
  const initial = bytes[keyStart + 1];
  if (initial !== UNDERSCORE && initial !== BACKSLASH) return false;
  return isStringToken(bytes, keyStart, endOfKey(bytes, keyStart, valueStart), META);
}

/** Between a key and its value there is no other quote. */
function endOfKey(bytes: Buffer, keyStart: number, valueStart: number): number {
  let at = valueStart - 1;
  while (at > keyStart && bytes[at] !== QUOTE) at--;
  return at + 1;
}

/** Does what `walkMembers` does, by the outline of the message that the object is in, where there is one. */
export function visitMembers(
  bytes: Buffer,
  objectStart: number,
  outline: Outline | undefined,
  take: TakeMember,
): number {
  return outline?.visitMembers(bytes, objectStart, take) ?? walkMembers(bytes, objectStart, take);
}

/**
 * The outline of the object that begins with these bytes, in one walk; and where it ends. -1: something in it is not JSON,
 * as far as a walk can tell.
 */
export function walkOutline(bytes: Buffer): { readonly outline: Outline; readonly end: number } {
  const outline = new Outline(bytes);
  return { outline, end: noteMembers(bytes, 0, { level: 1, outline }) };
}

/** The outline of a whole message; undefined: it is none. With too many members it has the first ones. */
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

/** A member that occurs twice is a `duplicate`; undefined: there is none. */
export type UniqueMember = Span | 'duplicate' | undefined;

/**
 * Like findMember, but reads the object to its end and says when the key occurs twice: parsers differ in which of the
 * two they take, so a check of one says nothing about what the other side will read.
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

/** Stands for all first units of characters that are not ASCII. */
const BEYOND_ASCII = 0x80;

/** Which keys a key can be that begins with a unit: of many members few begin like one that is looked for. */
function byInitial(keys: readonly string[]): readonly (readonly number[] | undefined)[] {
  const table: (number[] | undefined)[] = Array.from({ length: BEYOND_ASCII + 1 });
  for (const [index, key] of keys.entries()) {
    // After the opening quote of the empty key comes the other one.
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

// ---- Members that everybody reads alike. Some servers match the names of members without regard to case (Go's
// encoding/json does), and of two members with one name some take the first, some the last.

/** Sets the bit that makes a letter a small one. */
const CASE_BIT = 0x20;
const SMALL_A = 0x61;
const SMALL_Z = 0x7a;

/** A member's value; undefined: there is none. `unclear`: several members can be taken for it, or the only one is not spelled like this. */
export type Unmistakable = Span | 'unclear' | undefined;

/** A message, or the bytes of one of which nothing else is known. */
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

/** Does what `findUnmistakable` does for several keys at once; the values have the order of the keys. */
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

/** What is known of a key after another member that is, or looks like, the one it names. */
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
 * What the key token bytes[start, end) is to `key`, which is ASCII. Decodes only if it must: up to the first byte that is
 * escaped or not ASCII each byte stands for itself, whatever follows.
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

/** Upper case first: it makes an `S` of the long s, lower case makes a `k` of the Kelvin sign. */
export function fold(key: string): string {
  return key.toUpperCase().toLowerCase();
}
