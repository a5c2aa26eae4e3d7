/**
 * Where the members of a message's outer objects stand, noted down by whoever goes over all of its bytes anyway, so that
 * those who look for one of them need not walk over the same bytes again.
 */
import { OPEN_BRACE, QUOTE } from './ascii.ts';
import { MemberCursor, type Members } from './scan-json.ts';

/** Of the message, of its params, and of what those hold, as `_meta`. For deeper members nobody looks twice. */
const LEVELS = 3;
/** Usual messages have a dozen. Of one with more nothing is kept, and its members are found by walking. */
const MAX_MEMBERS = 64;

/** What is noted of each member, in this order. */
const LEVEL = 0;
const KEY_START = 1;
const VALUE_START = 2;
const VALUE_END = 3;
const NOTES = 4;

/** Of a text that turns out not to be JSON it says nothing of use. */
export class Outline {
  /** Of all members, each before those within its value. */
  readonly #notes: number[] = [];
  /** Of each level, where the notes of its last member stand. */
  readonly #last: number[] = [0, 0, 0, 0];

  /** False: there are more members than could be noted. */
  get isComplete(): boolean {
    return this.#notes.length <= MAX_MEMBERS * NOTES;
  }

  /** @param level how many objects and arrays the member stands in */
  memberBegins(level: number, keyStart: number, valueStart: number): void {
    if (level > LEVELS || !this.isComplete) return;
    this.#last[level] = this.#notes.length;
    this.#notes.push(level, keyStart, valueStart, -1);
  }

  /** So does the last one of this level. */
  memberEnds(level: number, end: number): void {
    if (level <= LEVELS && this.isComplete) this.#notes[(this.#last[level] as number) + VALUE_END] = end;
  }

  /** The same as a MemberCursor; undefined: they were not noted. */
  membersOf(bytes: Buffer, objectStart: number): Members | undefined {
    if (bytes[objectStart] !== OPEN_BRACE) return undefined;
    const notes = this.#notes;
    if (objectStart === 0) return new NotedMembers(bytes, notes, { first: 0, level: 1, end: bytes.length });
    for (let at = 0; at < notes.length; at += NOTES) {
      if (notes[at + VALUE_START] !== objectStart) continue;
      const level = (notes[at + LEVEL] as number) + 1;
      const end = notes[at + VALUE_END] as number;
      return level > LEVELS ? undefined : new NotedMembers(bytes, notes, { first: at + NOTES, level, end });
    }
    return undefined;
  }
}

/** The members of the object at `objectStart`, from the outline of its message where there is one. */
export function membersOf(bytes: Buffer, objectStart: number, outline: Outline | undefined): Members {
  return outline?.membersOf(bytes, objectStart) ?? new MemberCursor(bytes, objectStart);
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

  /** Between a key and its value there is no other quote. */
  get keyEnd(): number {
    let at = this.valueStart - 1;
    while (at > this.keyStart && this.#bytes[at] !== QUOTE) at--;
    return at + 1;
  }

  next(): boolean {
    const notes = this.#notes;
    let at = this.#next;
    while (at < notes.length && (notes[at] as number) > this.#level) at += NOTES;
    if (at >= notes.length || notes[at] !== this.#level) {
      this.objectEnd = this.#end;
      return false;
    }
    this.keyStart = notes[at + KEY_START] as number;
    this.valueStart = notes[at + VALUE_START] as number;
    this.#valueEnd = notes[at + VALUE_END] as number;
    this.#next = at + NOTES;
    return true;
  }

  valueEnd(): number {
    return this.#valueEnd;
  }
}
