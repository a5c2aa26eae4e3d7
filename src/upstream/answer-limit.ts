import type { Logger } from 'pino';
import type { Frame } from '../wire/frame.ts';

/**
 * Answers that are kept for a server which takes nothing. Its clients are asked to stop meanwhile, but the server itself
 * goes on asking, and much of that is answered here at once: pings, and what nobody can be asked.
 */
const MAX_UNTAKEN = 4096;
const MAX_UNTAKEN_BYTES = 64 * 1024 * 1024;

/** What a server has not taken of the answers to its own requests. */
export class AnswerLimit {
  readonly #log: Logger;
  /** Since the server has been full. */
  #count = 0;
  #bytes = 0;
  #hasWarned = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** True: an answer that is one too many, and is to be dropped. To be asked before each message. */
  excludes({ isResponse, bytes }: Frame, isFull: boolean): boolean {
    if (!isFull) {
      this.#count = 0;
      this.#bytes = 0;
    }
    if (!isFull || !isResponse) return false;
    this.#count += 1;
    this.#bytes += bytes.length;
    if (this.#count <= MAX_UNTAKEN && this.#bytes <= MAX_UNTAKEN_BYTES) return false;
    if (!this.#hasWarned) this.#log.warn('the server asks and takes no answers; from now on they are dropped');
    this.#hasWarned = true;
    return true;
  }
}
