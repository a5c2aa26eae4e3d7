/**
 * Where the members of a message's outer objects stand, noted down by whoever goes over all of its bytes anyway, so that
 * those who look for one of them need not walk over the same bytes again.
 */
import { BACKSLASH, OPEN_BRACE, QUOTE } from './ascii.ts';
import { isStringToken, MemberCursor, type Members } from './scan-json.ts';

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
  /** Of all members, each before those within its value. */
  readonly #notes: number[] = [];
  /** Of each level, where the notes of its last member stand. */
  readonly #last: number[] = [0, 0, 0, 0];
  /** The last member of the payload was its `_meta`. */
  #isInMeta = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
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
    if (level === LEVELS - 1) this.#isInMeta = isMeta(this.#bytes, keyStart, valueStart);
    this.#last[level] = this.#notes.length;
    this.#notes.push(level, keyStart, valueStart, -1);
  }

  /** So does the last one of this level. */
  memberEnds(level: number, end: number): void {
    if (level >= LEVELS && (level > LEVELS || !this.#isInMeta)) return;
    if (this.isComplete) this.#notes[(this.#last[level] as number) + VALUE_END] = end;
  }

  /** The members of an object, as a MemberCursor finds them; undefined: those of this object were not noted. */
  membersOf(bytes: Buffer, objectStart: number): Members | undefined {
    if (bytes[objectStart] !== OPEN_BRACE) return undefined;
    const notes = this.#notes;
    const { isComplete } = this;
    const whole = { first: 0, level: 1, end: isComplete ? bytes.length : -1 };
    if (objectStart === 0) return new NotedMembers(bytes, notes, whole);
    for (let at = 0; at < notes.length; at += NOTES) {
      if (notes[at + VALUE_START] !== objectStart) continue;
      const level = (notes[at + LEVEL] as number) + 1;
      const end = notes[at + VALUE_END] as number;
      const isNoted =
        level < LEVELS || (level === LEVELS && isMeta(bytes, notes[at + KEY_START] as number, objectStart));
      return isNoted ? new NotedMembers(bytes, notes, { first: at + NOTES, level, end }) : undefined;
    }
    // What comes after so many members is not looked for.
    return isComplete ? undefined : new NotedMembers(bytes, notes, { first: notes.length, level: LEVELS, end: -1 });
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

/** The members of the object at `objectStart`, from the outline of its message where there is one. */
export function membersOf(bytes: Buffer, objectStart: number, outline: Outline | undefined): Members {
  return outline?.membersOf(bytes, objectStart) ?? new MemberCursor(bytes, objectStart);
}

/**
 * The outline of the object that begins with these bytes, in one walk; and where it ends. -1: something in it is not JSON,
 * as far as a walk can tell.
 */
export function walkOutline(bytes: Buffer): { readonly outline: Outline; readonly end: number } {
  const outline = new Outline(bytes);
  return { outline, end: walkMembers(bytes, 0, { level: 1, outline }) };
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

function walkMembers(bytes: Buffer, objectStart: number, { level, outline }: Walk): number {
  const members = new MemberCursor(bytes, objectStart);
  while (members.next()) {
    const { keyStart, valueStart } = members;
    outline.memberBegins(level, keyStart, valueStart);
    if (!outline.isComplete) return -1;
    if (outline.notesWithin(level) && bytes[valueStart] === OPEN_BRACE) {
      const end = walkMembers(bytes, valueStart, { level: level + 1, outline });
      if (end === -1) return -1;
      members.passTo(end);
    }
    outline.memberEnds(level, members.valueEnd());
  }
  return members.objectEnd;
}

interface Place {
  /** Where the notes of the first member stand, if there is one. */
  readonly first: number;
  readonly level: number;
  /** Of the object. */
  readonly end: number;
}

class NotedMembers implements Members {
  readonly #bytes: Buffer;
  readonly #notes: readonly number[];
  readonly #level: number;
  readonly #end: number;
  #next: number;
  #valueEnd = -1;
  keyStart = -1;
  valueStart = -1;
  objectEnd = -1;

  constructor(bytes: Buffer, notes: readonly number[], { first, level, end }: Place) {
    this.#bytes = bytes;
    this.#notes = notes;
    this.#next = first;
    this.#level = level;
    this.#end = end;
  }

  get keyEnd(): number {
    return endOfKey(this.#bytes, this.keyStart, this.valueStart);
  }

  next(): boolean {
    const notes = this.#notes;
    let at = this.#next;
    while (at < notes.length && (notes[at] as number) > this.#level) at += NOTES;
    if (at >= notes.length || notes[at] !== this.#level) {
      this.objectEnd = this.#end;
      return false;
    }
    this.#valueEnd = notes[at + VALUE_END] as number;
    if (this.#valueEnd === -1) return false;
    this.keyStart = notes[at + KEY_START] as number;
    this.valueStart = notes[at + VALUE_START] as number;
    this.#next = at + NOTES;
    return true;
  }

  valueEnd(): number {
    return this.#valueEnd;
  }
}
