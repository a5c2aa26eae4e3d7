/**
 * Finds members of an object by their names. Where the members of a message's outer objects stand is noted down by
 * whoever goes over all of its bytes anyway, so that those who look for one of them need not walk over the same bytes
 * again.
 */
import { BACKSLASH, OPEN_BRACE, QUOTE } from './ascii.ts';
import {
  type Edit,
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
const VALUE_END = 3;
const NOTES = 4;

/**
 * An outline of text that turns out not to be JSON says nothing of use. Where there are too many members it has the first
 * ones, and no object that they stand in has an end.
 */
export class Outline {
  readonly #bytes: Buffer;
  /** The notes of all members, each before those within its value. */
  readonly #notes: number[];
  /** For each level the index of the notes of its last member. */
  readonly #last: number[] = [0, 0, 0, 0];
  /** The last member of the payload was its `_meta`. */
  #isInMeta = false;
  #holdsMeta: boolean;

  constructor(bytes: Buffer, notes: number[] = []) {
    this.#bytes = bytes;
    this.#notes = notes;
    this.#holdsMeta = notes.length > 0;
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
      this.#isInMeta = isMeta(this.#bytes, keyStart, valueStart);
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

  /**
   * The outline of the message that edits make of this one. They must leave it JSON. Undefined: they change more than whole
   * members and what lies within values, so that it takes a walk to tell where its members stand.
   */
  edited(bytes: Buffer, edits: readonly Edit[]): Outline | undefined {
    if (!this.isComplete) return undefined;
    const shifter = new NoteShifter(this.#bytes, edits);
    const notes = this.#notes;
    for (let at = 0; at < notes.length; at += NOTES) {
      const [level, keyStart, valueStart, valueEnd] = notes.slice(at, at + NOTES) as [number, number, number, number];
      if (!shifter.take(level, keyStart, valueStart, valueEnd)) return undefined;
    }
    return shifter.end() ? new Outline(bytes, shifter.notes) : undefined;
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
    const bytes = this.#bytes;
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

/** Makes the notes of an edited message of those of the message, in one walk over both the notes and the edits. */
class NoteShifter {
  readonly notes: number[] = [];
  readonly #bytes: Buffer;
  readonly #edits: readonly Edit[];
  /** The first of the edits that are not yet behind. */
  #edit = 0;
  /** It removes a member that was noted. */
  #hasRemoved = false;
  #shift = 0;
  /** Objects whose members are being gone over, outermost first: where their new notes stand, and their old end. */
  readonly #open: { readonly level: number; readonly note: number; readonly end: number }[] = [];

  constructor(bytes: Buffer, edits: readonly Edit[]) {
    this.#bytes = bytes;
    this.#edits = edits;
  }

  /** False: an edit changes something else than whole members or what lies within one value. */
  take(level: number, keyStart: number, valueStart: number, valueEnd: number): boolean {
    if (!this.#close(level) || !this.#passRemovals(keyStart)) return false;
    const edit = this.#edits[this.#edit];
    if (edit !== undefined && edit.start <= keyStart) {
      this.#hasRemoved = true;
      return edit.replacement.length === 0 && edit.end >= valueEnd;
    }
    const note = this.notes.length;
    this.notes.push(level, keyStart + this.#shift, valueStart + this.#shift, -1);
    const isOpen = level < LEVELS - 1 || (level === LEVELS - 1 && isMeta(this.#bytes, keyStart, valueStart));
    if (isOpen && this.#bytes[valueStart] === OPEN_BRACE) {
      this.#open.push({ level, note, end: valueEnd });
      return true;
    }
    const isWithin = this.#passWithin(valueStart, valueEnd, isOpen);
    this.notes[note + VALUE_END] = valueEnd + this.#shift;
    return isWithin;
  }

  /** False also: there are edits behind the last member. */
  end(): boolean {
    return this.#close(0) && this.#passRemovals(this.#bytes.length) && this.#edit === this.#edits.length;
  }

  /** The objects at this level and below have no more members. */
  #close(level: number): boolean {
    for (;;) {
      const last = this.#open.at(-1);
      if (last === undefined || last.level < level) return true;
      this.#open.pop();
      if (!this.#passRemovals(last.end)) return false;
      this.notes[last.note + VALUE_END] = last.end + this.#shift;
    }
  }

  /** Goes on over the edits that end up to here. Each must have removed a member. */
  #passRemovals(offset: number): boolean {
    for (;;) {
      const edit = this.#edits[this.#edit];
      if (edit === undefined || edit.end > offset) return true;
      if (!this.#hasRemoved) return false;
      this.#pass(edit);
    }
  }

  /** Goes on over the edits within a value. At its ends another member, or an object with members, might come to stand. */
  #passWithin(valueStart: number, valueEnd: number, isOpen: boolean): boolean {
    for (;;) {
      const edit = this.#edits[this.#edit];
      if (edit === undefined || edit.start >= valueEnd) return true;
      const isInsertedBefore = edit.start === valueStart && edit.end === valueStart;
      const isObject = edit.start === valueStart && isOpen && edit.replacement[0] === OPEN_BRACE;
      if (edit.end > valueEnd || isInsertedBefore || isObject) return false;
      this.#pass(edit);
    }
  }

  #pass({ start, end, replacement }: Edit): void {
    this.#shift += replacement.length - (end - start);
    this.#edit += 1;
    this.#hasRemoved = false;
  }
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
