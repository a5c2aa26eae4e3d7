/** Collections that peers fill, within limits of number and size: a queue, and a map of the latest names. */
/** How much may wait. */
export interface QueueLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
}

/** The size of what is, or goes along with, a message. */
export const frameBytes = ({ frame }: { readonly frame: { readonly bytes: Buffer } }): number => frame.bytes.length;

/** Empty entries at the start that the array may still hold: they are cut off now and then, not one by one. */
const MAX_SPENT_ENTRIES = 1024;

/**
 * What waits, first come first served, with a limit on its number and its bytes. What happens at the limit is for the
 * owner to decide, for a queue cannot know: it stops its source (`isFull`), refuses what comes (`fits`), or lets go of the
 * oldest (`shift`, `removeFirst`).
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

  /** A limit is reached. */
  get isFull(): boolean {
    return this.length >= this.limits.maxItems || this.#bytes >= this.limits.maxBytes;
  }

  /** More waits than may. */
  get isExceeded(): boolean {
    return this.length > this.limits.maxItems || this.#bytes > this.limits.maxBytes;
  }

  /** No limit would be exceeded. */
  fits(item: Item): boolean {
    return this.length < this.limits.maxItems && this.#bytes + this.#sizeOf(item) <= this.limits.maxBytes;
  }

  /** Takes the item in any case. */
  add(item: Item): void {
    this.#items.push(item);
    this.#bytes += this.#sizeOf(item);
  }

  /** The oldest, which leaves the queue. */
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

  /** Everything, in order; the queue is empty afterwards. */
  takeAll(): readonly Item[] {
    const items = this.toArray();
    this.#items = [];
    this.#first = 0;
    this.#bytes = 0;
    return items;
  }

  /** All that meet the condition, in order; they leave the queue. */
  removeAll(isUnwanted: (item: Item) => boolean): readonly Item[] {
    const removed: Item[] = [];
    for (const item of this.takeAll()) {
      if (isUnwanted(item)) removed.push(item);
      else this.add(item);
    }
    return removed;
  }

  /** The oldest that meets the condition; it leaves the queue. */
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

  /** A copy, in order. */
  toArray(): readonly Item[] {
    return this.#items.slice(this.#first) as Item[];
  }
}

export interface RecentNamesLimits {
  readonly count: number;
  /** Characters of all of them together. */
  readonly length: number;
}

interface Known<Value> {
  readonly value: Value;
  readonly length: number;
}

/** What is known by names that a peer chose, and how many it chose: the latest ones, within limits of both. */
export class RecentNames<Value> {
  readonly #limits: RecentNamesLimits;
  /** The latest is at the end. */
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

  /** Up to so many of the names that were set last. */
  latest(count: number): readonly string[] {
    return [...this.#known.keys()].slice(-count);
  }

  /** The oldest make way for it; what is too long by itself is not kept. `more`: characters its value holds. */
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

  /** The names and values, the oldest first. */
  *[Symbol.iterator](): Generator<readonly [name: string, value: Value], undefined> {
    for (const [name, { value }] of this.#known) yield [name, value];
  }
}
