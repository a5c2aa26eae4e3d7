import { BridgeError } from '../errors.ts';

/** Counts the server processes of the bridge, so that they stay within what the machine was meant to carry. */
export class ChildLimit {
  readonly #max: number;
  #count = 0;

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  /** Throws ERR_SESSION_LIMIT when one more may not be started now. */
  check(): void {
    if (this.#count < this.#max) return;
    const message = `${this.#max} server processes run, the most allowed; those that are ending count. Try again later, or raise --max-children.`;
    throw new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: 1000 });
  }

  /** Counts a process until nothing of it runs any more. */
  add(gone: Promise<void>): void {
    this.#count += 1;
    void gone.then(() => {
      this.#count -= 1;
    });
  }
}
