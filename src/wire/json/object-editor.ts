import { CLOSE_BRACKET, COMMA, OPEN_BRACKET } from './ascii.ts';
import { type Outline, visitMembers } from './outline.ts';
import { type Edit, findText, type Span, skipValue, skipWhitespace } from './scan-json.ts';

/** A member whose name was asked for, and what lies around it. */
interface NamedMember {
  readonly key: string;
  /** How many members stand before it. */
  readonly index: number;
  readonly keyStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  /** Where the value of the member before ends; -1 for the first member. */
  readonly previousEnd: number;
  /** Where the next member begins; -1 for the last member. */
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
 * Changes members of one object by edits: all it is not told to change stays as it was written. Where a changed name
 * occurs several times, the first member takes the change and the others go, so that all parsers read the same.
 */
export class ObjectEditor {
  readonly #bytes: Buffer;
  readonly #keys: readonly string[];
  /** The named members in their order, with repetitions. */
  readonly #named: NamedMember[] = [];
  /** In the order in which they were first asked for; a few, so that no map is worth its making. */
  readonly #changes: Change[] = [];
  #memberCount = 0;
  /** Where the last value ends; after the opening brace when there is none. */
  #lastEnd: number;
  #end = -1;

  private constructor(bytes: Buffer, objectStart: number, keys: readonly string[]) {
    this.#bytes = bytes;
    this.#keys = keys;
    this.#lastEnd = objectStart + 1;
  }

  /** Reads the object at `objectStart`, whose members called one of `keys` may change. Undefined: it is no object. */
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

  /** Nothing happens when there is no such member. */
  remove(key: string): void {
    this.#change({ kind: 'remove', key });
  }

  /** Gives the member this JSON text as its value; one that is not there is added at the end. */
  set(key: string, value: Buffer): void {
    this.#change({ kind: 'set', key, value });
  }

  /** Changes something within the member's value. The member must be there. */
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

  /** Would the object have no members after the changes? */
  get isEmpty(): boolean {
    const removed = this.#named.filter((member) => this.#isRemoved(member)).length;
    return removed === this.#memberCount && this.#added().length === 0;
  }

  /** The changes in order, ready for `replaceSpans`. Empty when they come to nothing. */
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

/** Takes the comma before the member along, or the one after it when nothing that stays stands before. */
function removal(member: NamedMember, isPreceded: boolean): Edit {
  const { keyStart, valueEnd, previousEnd, nextStart } = member;
  if (isPreceded) return { start: previousEnd, end: valueEnd, replacement: NOTHING };
  return { start: keyStart, end: nextStart === -1 ? valueEnd : nextStart, replacement: NOTHING };
}

/**
 * Items of a list that the bridge looks at one by one, as tools or blocks of content, in one message. Longer lists pass as
 * they are: each item costs as much as a hundred bytes of text, and no list of use is as long.
 */
export const MAX_ITEMS = 20_000;

/** The items of the array at `arrayStart`. Undefined: it is no array, or its end is missing, or it has too many. */
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
 * The objects in the array at `arrayStart`, whose members called one of `keys` may change, read in one walk. Items that are
 * no objects are left out. Undefined under the conditions of `itemSpans`.
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

/** @param take gets where an item begins and returns where it ends, or -1 where that cannot be told */
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
