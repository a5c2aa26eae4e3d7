/** Where a value of a CellMap stands; empty once it was taken out. */
interface Cell<Value> {
  value: Value | undefined;
}

/**
 * A Map, in its order, for values that come and go with every call. V8 replaces a map's table after some changes and
 * keeps the new one reachable from the old. Once a replaced table has survived long enough to be collected rarely, all
 * its successors survive with it, each with whatever was in it when it was replaced: calls by the thousand, with
 * everything they hold. Here they hold cells, which were emptied.
 */
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
