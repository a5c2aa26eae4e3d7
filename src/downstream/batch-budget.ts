/**
 * Answers to an array are collected for one JSON array up to this size, for each POST and for all arrays of a pipe
 * together; beyond it they leave as they come.
 */
export const MAX_COLLECTED_BYTES = 1024 * 1024;

/** Bounds the answers that wait for the others of their array, for all arrays of a pipe together. */
export class BatchBudget {
  #bytes = 0;

  /** False: so many bytes more would exceed the budget. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_COLLECTED_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
