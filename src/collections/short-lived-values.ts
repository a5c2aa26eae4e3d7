/**
 * A map and a list for values that come and go with every call. Neither holds on to a value that was removed, as V8's
 * own maps and sets do: they replace their table after some changes and keep the new one reachable from the old. Once a
 * replaced table has survived long enough to be collected rarely, all its successors survive with it, each with
 * whatever was in it when it was replaced: calls by the thousand, with everything they hold.
 */

/** Where a value of a CellMap stands; empty once it was taken out. */
interface Cell<Value> {
  value: Value | undefined;
}

/** A Map, in its order. Replaced tables hold its cells, which were emptied. */
export class CellMap<Key extends string | number, Value extends object> {
  readonly #cells = new Map<Key, Cell<Value>>();

  get size(): number {
    return this.#cells.size;
  }

  has(key: Key): boolean {
    return this.#cells.has(key);
  }

  get(key: Key): Value | undefined {
    return this.#cells.get(key)?.value;
  }

  set(key: Key, value: Value): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { value });
    else cell.value = value;
  }

  /** False: it was not there. */
  delete(key: Key): boolean {
    const cell = this.#cells.get(key);
    if (cell === undefined) return false;
    cell.value = undefined;
    return this.#cells.delete(key);
  }

  clear(): void {
    for (const cell of this.#cells.values()) cell.value = undefined;
    this.#cells.clear();
  }

  *values(): Generator<Value, undefined> {
    for (const { value } of this.#cells.values()) if (value !== undefined) yield value;
  }
}

/**
 * What can stand in a LinkedList, in one at a time. A member is its own node, so a list costs it no other object, and
 * nothing is looked up to take it out.
 */
export class ListMember {
  /**
   * The neighbours, or the end of the list; the member itself while it is in no list. For LinkedList alone. They are
   * assigned and not defined as fields: where many classes extend one, V8 defines its fields far more slowly.
   */
  declare listPrevious: ListMember;
  declare listNext: ListMember;

  constructor() {
    this.listPrevious = this;
    this.listNext = this;
  }

  get isListed(): boolean {
    return this.listNext !== this;
  }

  /** Takes it out of its list. Afterwards it leads to no other member. False: it was in none. */
  unlink(): boolean {
    if (!this.isListed) return false;
    this.listPrevious.listNext = this.listNext;
    this.listNext.listPrevious = this.listPrevious;
    this.listPrevious = this;
    this.listNext = this;
    return true;
  }
}

/** Takes a value into a list that is no member by itself. */
export class ListedValue<Value> extends ListMember {
  readonly value: Value;

  constructor(value: Value) {
    super();
    this.value = value;
  }
}

/** A doubly linked list in the order of arrival. */
export class LinkedList<Member extends ListMember> {
  /** Before the first member and after the last. */
  readonly #end = new ListMember();

  get isEmpty(): boolean {
    return !this.#end.isListed;
  }

  /** The only one, if there is exactly one. */
  get sole(): Member | undefined {
    const { listNext } = this.#end;
    return listNext.listNext === this.#end && !this.isEmpty ? (listNext as Member) : undefined;
  }

  /** Appends the member, which takes itself out again. */
  add(member: Member): void {
    if (member.isListed) throw new Error('the member is in a list already');
    const last = this.#end.listPrevious;
    member.listPrevious = last;
    member.listNext = this.#end;
    last.listNext = member;
    this.#end.listPrevious = member;
  }

  /** The members in their order. Only the one that is visited may be taken out meanwhile. */
  *[Symbol.iterator](): Generator<Member, undefined> {
    for (let member = this.#end.listNext; member !== this.#end; ) {
      const { listNext } = member;
      yield member as Member; // all but the end are
      member = listNext;
    }
  }

  /** A copy, for loops in which other members are taken out. */
  toArray(): Member[] {
    const members: Member[] = [];
    for (let member = this.#end.listNext; member !== this.#end; member = member.listNext) {
      members.push(member as Member); // all but the end are
    }
    return members;
  }

  /** The latest one that meets the condition. */
  findLast(isWanted: (member: Member) => boolean): Member | undefined {
    for (let member = this.#end.listPrevious; member !== this.#end; member = member.listPrevious) {
      if (isWanted(member as Member)) return member as Member; // all but the end are
    }
    return undefined;
  }
}
