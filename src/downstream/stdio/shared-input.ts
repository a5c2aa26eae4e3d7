import type { Readable } from 'node:stream';

/** The client's input while several conversations read it: it flows when none of them holds it back. */
export class SharedInput {
  readonly #input: Readable;
  readonly #holders = new Set<object>();

  constructor(input: Readable) {
    this.#input = input;
  }

  pauseFor(holder: object): void {
    this.#holders.add(holder);
    this.#input.pause();
  }

  resumeFor(holder: object): void {
    this.#holders.delete(holder);
    if (this.#holders.size === 0) this.#input.resume();
  }
}
