/**
 * Where the members of a message's outer objects stand, noted down by whoever goes over all of its bytes anyway, so that
 * those who look for one of them need not walk over the same bytes again.
 */
import { BACKSLASH, OPEN_BRACE, QUOTE } from './ascii.ts';
import { type Edit, isStringToken, MemberCursor, type Members } from './scan-json.ts';

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

  /** So does the last one of this level. */
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

interface NotedObject {
  /** Where the notes of the first member stand, if there is one. */
  readonly first: number;
  readonly level: number;
  /** The end of the object. */
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

  constructor(bytes: Buffer, notes: readonly number[], { first, level, end }: NotedObject) {
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
