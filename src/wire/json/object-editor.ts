import { CLOSE_BRACKET, COMMA, OPEN_BRACKET } from './ascii.ts';
import { type Outline, visitMembers } from './outline.ts';
import { type Edit, findText, type Span, skipValue, skipWhitespace } from './scan-json.ts';

/** A member whose name was asked for, and what lies around it. */
interface NamedMember {
  readonly key: string;
  readonly index: number;
  readonly keyStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  readonly previousEnd: number;
  nextStart: number;
}

interface OutlinedText {
  readonly bytes: Buffer;
  readonly outline: Outline | undefined;
}

type Change =
  | { readonly kind: 'remove'; readonly key: string }
  | { readonly kind: 'set'; readonly key: string; readonly value: Buffer }
  | { readonly kind: 'edit'; readonly key: string; readonly edits: readonly Edit[] };

const NOTHING = Buffer.alloc(0);

/**
 * Changes members of one object by edits. All other bytes stay as written. If a changed key occurs several times, the
 * first member takes the change and the others are removed, so that all parsers read the same value.
 */
export class ObjectEditor {
  readonly #bytes: Buffer;
  readonly #keys: readonly string[];
  /** The members with a requested key in their order, duplicates included. */
  readonly #named: NamedMember[] = [];
  /** In the order of the first change to each key. There are few, so a map is not worthwhile. */
  readonly #changes: Change[] = [];
  #memberCount = 0;
  /** The end of the last value; after the opening brace if the object is empty. */
  #lastEnd: number;
  #end = -1;

  private constructor(bytes: Buffer, objectStart: number, keys: readonly string[]) {
    this.#bytes = bytes;
    this.#keys = keys;
    this.#lastEnd = objectStart + 1;
  }

  /**
   * Reads the object at `objectStart`; only members with one of these keys can be changed. Undefined if the value is no
   * object.
   */
  static read(bytes: Buffer, objectStart: number, keys: readonly string[]): ObjectEditor | undefined {
    return ObjectEditor.readIn({ bytes, outline: undefined }, objectStart, keys);
  }

  /** Reads an object in a message whose outline may be known; see `read`. */
  static readIn(
    { bytes, outline }: OutlinedText,
    objectStart: number,
    keys: readonly string[],
  ): ObjectEditor | undefined {
    if (objectStart < 0) return undefined;
    const editor = new ObjectEditor(bytes, objectStart, keys);
    return editor.#readMembers(objectStart, outline) ? editor : undefined;
  }

  #readMembers(objectStart: number, outline: Outline | undefined): boolean {
    let last: NamedMember | undefined;
    this.#end = visitMembers(this.#bytes, objectStart, outline, (keyStart, keyEnd, valueStart, valueEnd) => {
      if (last !== undefined) last.nextStart = keyStart;
      last = undefined;
      const key = findText(this.#bytes, keyStart, keyEnd, this.#keys);
      if (key !== undefined) {
        const previousEnd = this.#memberCount === 0 ? -1 : this.#lastEnd;
        last = { key, index: this.#memberCount, keyStart, valueStart, valueEnd, previousEnd, nextStart: -1 };
        this.#named.push(last);
      }
      this.#memberCount++;
      this.#lastEnd = valueEnd;
      return true;
    });
    return this.#end !== -1;
  }

  /** The offset after the object's closing brace, as it was read. */
  get end(): number {
    return this.#end;
  }

  /** The value of the first member of this name, as it was read. */
  value(key: string): Span | undefined {
    const member = this.#first(key);
    return member && { start: member.valueStart, end: member.valueEnd };
  }

  #first(key: string): NamedMember | undefined {
    return this.#named.find((member) => member.key === key);
  }

  /** Removes the member, if it exists. */
  remove(key: string): void {
    this.#change({ kind: 'remove', key });
  }

  /** Sets the member's value to this JSON text. A missing member is added at the end. */
  set(key: string, value: Buffer): void {
    this.#change({ kind: 'set', key, value });
  }

  /** Applies edits inside the member's value. The member must exist. */
  edit(key: string, edits: readonly Edit[]): void {
    this.#change({ kind: 'edit', key, edits });
  }

  #change(change: Change): void {
    const { key } = change;
    if (!this.#keys.includes(key)) throw new Error(`the editor was not asked to look for "${key}"`);
    const index = this.#changes.findIndex((earlier) => earlier.key === key);
    if (index === -1) this.#changes.push(change);
    else this.#changes[index] = change;
  }

  #changeOf({ key }: NamedMember): Change | undefined {
    return this.#changes.find((change) => change.key === key);
  }

  /** True if the object has no members after the changes. */
  get isEmpty(): boolean {
    const removed = this.#named.filter((member) => this.#isRemoved(member)).length;
    return removed === this.#memberCount && this.#added().length === 0;
  }

  /** The changes as sorted edits for `replaceSpans`; empty if nothing changes. */
  edits(): readonly Edit[] {
    const edits: Edit[] = [];
    let removed = 0;
    for (const member of this.#named) {
      const change = this.#changeOf(member);
      if (this.#isRemoved(member)) {
        edits.push(removal(member, member.index > removed));
        removed++;
      } else if (change?.kind === 'set') {
        edits.push({ start: member.valueStart, end: member.valueEnd, replacement: change.value });
      } else if (change?.kind === 'edit') {
        for (const edit of change.edits) edits.push(edit);
      }
    }
    const added = this.#added();
    if (added.length > 0) edits.push(this.#addition(added, this.#memberCount > removed));
    return edits;
  }

  #isRemoved(member: NamedMember): boolean {
    const change = this.#changeOf(member);
    if (change === undefined) return false;
    return change.kind === 'remove' || this.#first(member.key) !== member;
  }

  #added(): readonly (readonly [string, Buffer])[] {
    const added: [string, Buffer][] = [];
    for (const change of this.#changes) {
      if (change.kind === 'set' && this.#first(change.key) === undefined) added.push([change.key, change.value]);
    }
    return added;
  }

  #addition(added: readonly (readonly [string, Buffer])[], hasMembers: boolean): Edit {
    const parts: Buffer[] = [];
    for (const [key, value] of added) {
      const comma = hasMembers || parts.length > 0 ? ',' : '';
      parts.push(Buffer.from(`${comma}${JSON.stringify(key)}:`), value);
    }
    return { start: this.#lastEnd, end: this.#lastEnd, replacement: Buffer.concat(parts) };
  }
}

/** Removes a member with the comma before it, or with the comma after it if no kept member precedes it. */
function removal(member: NamedMember, isPreceded: boolean): Edit {
  const { keyStart, valueEnd, previousEnd, nextStart } = member;
  if (isPreceded) return { start: previousEnd, end: valueEnd, replacement: NOTHING };
  return { start: keyStart, end: nextStart === -1 ? valueEnd : nextStart, replacement: NOTHING };
}

/**
 * Limit of items in a list that the bridge reads one by one, such as tools or content blocks. Longer lists are
 * forwarded unread: each item costs as much as a hundred bytes of text, and no list in use is that long.
 */
export const MAX_ITEMS = 20_000;

/** The items of the array at `arrayStart`. Undefined if the value is no array, is truncated or has too many items. */
export function itemSpans(bytes: Buffer, arrayStart: number): readonly Span[] | undefined {
  const items: Span[] = [];
  const isWhole = walkItems(bytes, arrayStart, (start) => {
    const end = skipValue(bytes, start);
    items.push({ start, end });
    return end;
  });
  return isWhole ? items : undefined;
}

/**
 * Editors for the objects in the array at `arrayStart`, read in one walk; members with one of these keys can be
 * changed. Other items are skipped. Undefined under the conditions of `itemSpans`.
 */
export function itemEditors(
  bytes: Buffer,
  arrayStart: number,
  keys: readonly string[],
): readonly ObjectEditor[] | undefined {
  const items: ObjectEditor[] = [];
  const isWhole = walkItems(bytes, arrayStart, (start) => {
    const editor = ObjectEditor.read(bytes, start, keys);
    if (editor === undefined) return skipValue(bytes, start);
    items.push(editor);
    return editor.end;
  });
  return isWhole ? items : undefined;
}

/** @param take receives the start of an item and returns its end, or -1 if the item is malformed */
function walkItems(bytes: Buffer, arrayStart: number, take: (start: number) => number): boolean {
  if (arrayStart < 0 || bytes[arrayStart] !== OPEN_BRACKET) return false;
  let count = 0;
  let at = skipWhitespace(bytes, arrayStart + 1);
  if (bytes[at] === CLOSE_BRACKET) return true;
  while (at < bytes.length && count < MAX_ITEMS) {
    const end = take(at);
    if (end === -1) return false;
    count++;
    const next = skipWhitespace(bytes, end);
    if (bytes[next] === CLOSE_BRACKET) return true;
    if (bytes[next] !== COMMA) return false;
    at = skipWhitespace(bytes, next + 1);
  }
  return false;
}
