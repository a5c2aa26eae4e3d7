/**
 * A map and a list for values that exist only for one call. Neither keeps a removed value reachable, as V8's own maps
 * and sets do: they replace their table after some changes and keep the new one reachable from the old. Once a replaced
 * table has survived long enough to be collected rarely, all its successors survive with it, each with its content at
 * the time it was replaced: thousands of calls, with everything they reference.
 */

/** Holds a value of a CellMap; emptied when the value is removed. */
interface Cell<Value> {
  value: Value | undefined;
}

/** A map in insertion order. Tables that V8 has replaced still reference its cells, but the cells are empty. */
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

  /** Returns false if the key was missing. */
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
 * A member of a LinkedList, of at most one at a time. It is its own node, so a list needs no further object, and
 * removing it needs no lookup.
 */
export class ListMember {
  /**
   * The neighbors, or the end of the list; the member itself while it is in no list. Only LinkedList uses them. They
   * are assigned and not defined as fields: where many classes extend one, V8 defines its fields far more slowly.
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

  /** Removes the member from its list and clears its references to neighbors. Returns false if it was in no list. */
  unlink(): boolean {
    if (!this.isListed) return false;
    this.listPrevious.listNext = this.listNext;
    this.listNext.listPrevious = this.listPrevious;
    this.listPrevious = this;
    this.listNext = this;
    return true;
  }
}

/** Wraps a value that is no ListMember itself, so that a list can hold it. */
export class ListedValue<Value> extends ListMember {
  readonly value: Value;

  constructor(value: Value) {
    super();
    this.value = value;
  }
}

/** A doubly linked list in insertion order. */
export class LinkedList<Member extends ListMember> {
  /** The sentinel before the first member and after the last. */
  readonly #end = new ListMember();

  get isEmpty(): boolean {
    return !this.#end.isListed;
  }

  /** The only member, if there is exactly one. */
  get sole(): Member | undefined {
    const { listNext } = this.#end;
    return listNext.listNext === this.#end && !this.isEmpty ? (listNext as Member) : undefined;
  }

  /** Appends a member. The member removes itself with `unlink`. */
  add(member: Member): void {
    if (member.isListed) throw new Error('the member is in a list already');
    const last = this.#end.listPrevious;
    member.listPrevious = last;
    member.listNext = this.#end;
    last.listNext = member;
    this.#end.listPrevious = member;
  }

  /** Iterates over the members in their order. During the iteration only the visited member may be removed. */
  *[Symbol.iterator](): Generator<Member, undefined> {
    for (let member = this.#end.listNext; member !== this.#end; ) {
      const { listNext } = member;
      yield member as Member; // all but the end are
      member = listNext;
    }
  }

  /** Returns a copy, for loops that remove other members than the visited one. */
  toArray(): Member[] {
    const members: Member[] = [];
    for (let member = this.#end.listNext; member !== this.#end; member = member.listNext) {
      members.push(member as Member); // all but the end are
    }
    return members;
  }

  /** Returns the last member that meets the condition. */
  findLast(isWanted: (member: Member) => boolean): Member | undefined {
    for (let member = this.#end.listPrevious; member !== this.#end; member = member.listPrevious) {
      if (isWanted(member as Member)) return member as Member; // all but the end are
    }
    return undefined;
  }
}
