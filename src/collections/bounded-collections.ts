/** Collections with limits of number and size, because peers fill them: a queue, and a map of recent names. */
export interface QueueLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
}

/** The size of an item that holds a message, for a `ByteQueue`. */
export const frameBytes = ({ frame }: { readonly frame: { readonly bytes: Buffer } }): number => frame.bytes.length;

/**
 * Empty entries that the array may have at its start. They are removed together, because removing each would copy the
 * array.
 */
const MAX_SPENT_ENTRIES = 1024;

/**
 * A first-in, first-out queue with a limit of items and of bytes. The queue never acts at a limit; its owner does: it
 * pauses the source (`isFull`), rejects an item (`fits`), or drops the oldest (`shift`, `removeFirst`).
 */
export class ByteQueue<Item> {
  readonly limits: QueueLimits;
  readonly #sizeOf: (item: Item) => number;
  #items: (Item | undefined)[] = [];
  /** Index of the oldest item. */
  #first = 0;
  #bytes = 0;

  constructor(limits: QueueLimits, sizeOf: (item: Item) => number) {
    this.limits = limits;
    this.#sizeOf = sizeOf;
  }

  get length(): number {
    return this.#items.length - this.#first;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** True if a limit is reached. */
  get isFull(): boolean {
    return this.length >= this.limits.maxItems || this.#bytes >= this.limits.maxBytes;
  }

  /** True if a limit is exceeded. */
  get isExceeded(): boolean {
    return this.length > this.limits.maxItems || this.#bytes > this.limits.maxBytes;
  }

  /** True if adding the item would exceed no limit. */
  fits(item: Item): boolean {
    return this.length < this.limits.maxItems && this.#bytes + this.#sizeOf(item) <= this.limits.maxBytes;
  }

  /** Adds the item even if a limit is exceeded. */
  add(item: Item): void {
    this.#items.push(item);
    this.#bytes += this.#sizeOf(item);
  }

  /** Returns the oldest item. */
  peek(): Item | undefined {
    return this.#items[this.#first];
  }

  /** Removes and returns the oldest item. */
  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first] as Item;
    this.#items[this.#first] = undefined;
    this.#first += 1;
    this.#bytes -= this.#sizeOf(item);
    if (this.length === 0 || this.#first > MAX_SPENT_ENTRIES) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  /** Removes and returns all items in their order. */
  takeAll(): readonly Item[] {
    const items = this.toArray();
    this.#items = [];
    this.#first = 0;
    this.#bytes = 0;
    return items;
  }

  /** Removes and returns all items that meet the condition, in their order. */
  removeAll(isUnwanted: (item: Item) => boolean): readonly Item[] {
    const removed: Item[] = [];
    for (const item of this.takeAll()) {
      if (isUnwanted(item)) removed.push(item);
      else this.add(item);
    }
    return removed;
  }

  /** Removes and returns the oldest item that meets the condition. */
  removeFirst(isWanted: (item: Item) => boolean): Item | undefined {
    for (let index = this.#first; index < this.#items.length; index += 1) {
      const item = this.#items[index] as Item;
      if (!isWanted(item)) continue;
      this.#items.splice(index, 1);
      this.#bytes -= this.#sizeOf(item);
      return item;
    }
    return undefined;
  }

  some(isWanted: (item: Item) => boolean): boolean {
    for (let index = this.#first; index < this.#items.length; index += 1) {
      if (isWanted(this.#items[index] as Item)) return true;
    }
    return false;
  }

  /** Returns a copy in the items' order. */
  toArray(): readonly Item[] {
    return this.#items.slice(this.#first) as Item[];
  }
}

export interface RecentNamesLimits {
  readonly count: number;
  /** Limit in characters for all names and values together. */
  readonly length: number;
}

interface Known<Value> {
  readonly value: Value;
  readonly length: number;
}

/** A map of the most recently set names. Limited in number and size, because a peer chooses the names. */
export class RecentNames<Value> {
  readonly #limits: RecentNamesLimits;
  /** Ordered by the time of the last `set`, the latest at the end. */
  readonly #known = new Map<string, Known<Value>>();
  #length = 0;

  constructor(limits: RecentNamesLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#known.size;
  }

  has(name: string): boolean {
    return this.#known.has(name);
  }

  get(name: string): Value | undefined {
    return this.#known.get(name)?.value;
  }

  /** Returns at most this many of the most recently set names. */
  latest(count: number): readonly string[] {
    return [...this.#known.keys()].slice(-count);
  }

  /**
   * Sets a value and drops the oldest ones over the limits. A value that exceeds the limit by itself is not kept.
   * `more` is the value's own length in characters.
   */
  set(name: string, value: Value, more = 0): void {
    this.delete(name);
    const length = name.length + more;
    if (length > this.#limits.length) return;
    this.#known.set(name, { value, length });
    this.#length += length;
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= this.#limits.count && this.#length <= this.#limits.length) break;
      this.delete(oldest);
    }
  }

  delete(name: string): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    this.#known.delete(name);
    this.#length -= known.length;
  }

  clear(): void {
    this.#known.clear();
    this.#length = 0;
  }

  /** Iterates over names and values, the oldest first. */
  *[Symbol.iterator](): Generator<readonly [name: string, value: Value], undefined> {
    for (const [name, { value }] of this.#known) yield [name, value];
  }
}
