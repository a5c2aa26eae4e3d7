/** Calls of all clients together that wait for an answer: each holds a connection, and work of the server. */
export const MAX_OPEN_CALLS = 4096;

/** Counts the calls of all clients, of both eras, that wait for an answer. */
export class OpenCalls {
  readonly limit: number;
  #count = 0;

  constructor(limit = MAX_OPEN_CALLS) {
    this.limit = limit;
  }

  get size(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count >= this.limit;
  }

  opened(): void {
    this.#count += 1;
  }

  closed(): void {
    this.#count -= 1;
  }
}
