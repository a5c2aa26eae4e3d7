/**
 * A doubly linked list of what comes and goes with every call, in the order of arrival. Unlike in a Set, nothing is
 * looked up to remove a value, and nothing holds what was removed; see CellMap for what a Set holds on to.
 */
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
