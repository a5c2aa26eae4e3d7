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
