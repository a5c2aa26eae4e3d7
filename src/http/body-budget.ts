/** Taken of every body without asking: most messages are no larger, and get in whoever else sends slowly. */
export const FREE_BODY_BYTES = 16 * 1024;
/** Largest messages that may be on their way in at the same time; a sender decides how long one takes. */
export const BODIES_AT_A_TIME = 16;

/**
 * What all request bodies that are still being read may hold together. Without it every connection could keep one message
 * short of its last byte.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxMessageBytes: number) {
    this.#maxBytes = BODIES_AT_A_TIME * maxMessageBytes;
  }

  /** Held now, beyond what is free. */
  get bytes(): number {
    return this.#bytes;
  }

  /** False: there is no room for so much more. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
