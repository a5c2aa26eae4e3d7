import { OPEN_BRACE } from './ascii.ts';
import { NOTES, notesMembersOf, Outline, VALUE_END } from './outline.ts';
import type { Edit } from './scan-json.ts';

/**
 * Derives the outline of an edited message from the original's. The edited bytes must be valid JSON. Undefined if an
 * edit changes more than whole members or content inside a value, so that only a walk can find the members.
 */
export function editedOutline(outline: Outline, bytes: Buffer, edits: readonly Edit[]): Outline | undefined {
  if (!outline.isComplete) return undefined;
  const shifter = new NoteShifter(outline.bytes, edits);
  const { notes } = outline;
  for (let at = 0; at < notes.length; at += NOTES) {
    const [level, keyStart, valueStart, valueEnd] = notes.slice(at, at + NOTES) as [number, number, number, number];
    if (!shifter.take(level, keyStart, valueStart, valueEnd)) return undefined;
  }
  return shifter.end() ? new Outline(bytes, shifter.notes) : undefined;
}

/** Shifts a message's notes to their positions in the edited message, in one pass over notes and edits. */
class NoteShifter {
  readonly notes: number[] = [];
  readonly #bytes: Buffer;
  readonly #edits: readonly Edit[];
  /** Index of the first edit that is not applied yet. */
  #edit = 0;
  /** True if the current edit removes a noted member. */
  #hasRemoved = false;
  #shift = 0;
  /** Objects whose members are being visited, outermost first, with the index of their new notes and their old end. */
  readonly #open: { readonly level: number; readonly note: number; readonly end: number }[] = [];

  constructor(bytes: Buffer, edits: readonly Edit[]) {
    this.#bytes = bytes;
    this.#edits = edits;
  }

  /** Returns false if an edit changes more than whole members or content inside one value. */
  take(level: number, keyStart: number, valueStart: number, valueEnd: number): boolean {
    if (!this.#close(level) || !this.#passRemovals(keyStart)) return false;
    const edit = this.#edits[this.#edit];
    if (edit !== undefined && edit.start <= keyStart) {
      this.#hasRemoved = true;
      return edit.replacement.length === 0 && edit.end >= valueEnd;
    }
    const note = this.notes.length;
    this.notes.push(level, keyStart + this.#shift, valueStart + this.#shift, -1);
    const isOpen = notesMembersOf(level, this.#bytes, keyStart, valueStart);
    if (isOpen && this.#bytes[valueStart] === OPEN_BRACE) {
      this.#open.push({ level, note, end: valueEnd });
      return true;
    }
    const isWithin = this.#passWithin(valueStart, valueEnd, isOpen);
    this.notes[note + VALUE_END] = valueEnd + this.#shift;
    return isWithin;
  }

  /** Ends the message. Returns false in the case of `take`, and if there are edits after the last member. */
  end(): boolean {
    return this.#close(0) && this.#passRemovals(this.#bytes.length);
  }

  /** Ends the objects at this level and below. */
  #close(level: number): boolean {
    for (;;) {
      const last = this.#open.at(-1);
      if (last === undefined || last.level < level) return true;
      this.#open.pop();
      if (!this.#passRemovals(last.end)) return false;
      this.notes[last.note + VALUE_END] = last.end + this.#shift;
    }
  }

  /** Applies the edits that end up to this offset. Each must have removed a member. */
  #passRemovals(offset: number): boolean {
    for (;;) {
      const edit = this.#edits[this.#edit];
      if (edit === undefined || edit.end > offset) return true;
      if (!this.#hasRemoved) return false;
      this.#pass(edit);
    }
  }

  /** Applies the edits inside a value. At its ends an edit could insert another member, or an object with members. */
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
