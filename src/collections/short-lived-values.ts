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

/** A doubly linked list in the order of arrival. Unlike in a Set, nothing is looked up to remove a value. */
export class LinkedList<Value> {
  /** Before the first node and after the last. */
  readonly #end = new ListNode<Value>();

  get isEmpty(): boolean {
    return this.#end.next === this.#end;
  }

  /** The only one, if there is exactly one. */
  get sole(): Value | undefined {
    const { next } = this.#end;
    return next.next === this.#end ? next.value : undefined;
  }

  /** Appends the value. The caller keeps the node and removes it. */
  add(value: Value): ListNode<Value> {
    return new ListNode(value, this.#end);
  }

  /** The values in their order. Only the one that is visited may be removed meanwhile. */
  *[Symbol.iterator](): Generator<Value, undefined> {
    for (let node = this.#end.next; node !== this.#end; ) {
      const { next } = node;
      yield node.value as Value;
      node = next;
    }
  }

  /** A copy, for loops in which other values are removed. */
  toArray(): Value[] {
    const values: Value[] = [];
    for (let node = this.#end.next; node !== this.#end; node = node.next) values.push(node.value as Value);
    return values;
  }

  /** The latest one that meets the condition. */
  findLast(isWanted: (value: Value) => boolean): Value | undefined {
    for (let node = this.#end.previous; node !== this.#end; node = node.previous) {
      if (isWanted(node.value as Value)) return node.value;
    }
    return undefined;
  }
}

/** The node of one value. */
export class ListNode<Value> {
  /** Undefined once the node was removed, and in the list's own end. */
  value: Value | undefined;
  previous: ListNode<Value>;
  next: ListNode<Value>;

  /** Inserts the node before `end`; without `end` it stands alone. */
  constructor(value?: Value, end?: ListNode<Value>) {
    this.value = value;
    this.next = end ?? this;
    this.previous = end?.previous ?? this;
    this.previous.next = this;
    this.next.previous = this;
  }

  /** False: it was removed before. */
  remove(): boolean {
    if (this.value === undefined) return false;
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.previous = this;
    this.next = this;
    this.value = undefined;
    return true;
  }
}
