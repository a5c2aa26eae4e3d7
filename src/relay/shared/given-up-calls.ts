/** Ids that are remembered. Beyond that it is not known any more which calls the server has ended. */
export const MAX_GIVEN_UP = 1000;

/**
 * Calls that their clients gave up and that the server has not answered. It should have stopped, and need not say so;
 * one that has not can still ask something in them. [spec 2025-11-25 basic/utilities/cancellation]
 */
export class GivenUpCalls {
  readonly #ids = new Set<number>();
  #isFull = false;

  get isEmpty(): boolean {
    return this.#ids.size === 0 && !this.#isFull;
  }

  add(upstreamId: number): void {
    if (this.#ids.size < MAX_GIVEN_UP) this.#ids.add(upstreamId);
    else this.#isFull = true;
  }

  /** The server answers one after all: it asks nothing more in it. */
  answered(upstreamId: unknown): void {
    if (typeof upstreamId === 'number') this.#ids.delete(upstreamId);
  }

  /** The server is another one. */
  clear(): void {
    this.#ids.clear();
    this.#isFull = false;
  }
}
