import { BridgeError } from '../errors.ts';

/** Calls of all clients together that wait for an answer: each holds a connection, and work of the server. */
export const MAX_OPEN_CALLS = 4096;
/** What their requests may hold besides: some ways to a server keep a request until it is answered. */
export const MAX_OPEN_BYTES = 256 * 1024 * 1024;
/** Requests up to here are limited by their number, so that small calls go on when large ones are refused. */
const SMALL_REQUEST_BYTES = 16 * 1024;

const RETRY = { retryAfterMs: 1000 };

/** Counts the calls of all clients, of both eras, that wait for an answer. */
export class OpenCalls {
  readonly limit: number;
  readonly #maxBytes: number;
  #count = 0;
  /** The bytes of large requests together. */
  #bytes = 0;

  /** @param maxBytes of large requests together; the one that exceeds it is still taken */
  constructor(limit = MAX_OPEN_CALLS, maxBytes = MAX_OPEN_BYTES) {
    this.limit = limit;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#count;
  }

  /** Why one more call with a request of this size is refused; undefined: it is not. */
  refusalOf(requestBytes: number): BridgeError | undefined {
    if (this.#count >= this.limit) {
      const message = `${this.limit} calls of all clients together are unanswered, the most allowed here; wait for answers, or close subscriptions, before sending more.`;
      return new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    if (requestBytes > SMALL_REQUEST_BYTES && this.#bytes >= this.#maxBytes) {
      const message = `The unanswered requests of all clients together have ${this.#maxBytes} bytes, the most allowed here; wait for answers before sending more large ones.`;
      return new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    return undefined;
  }

  opened(requestBytes: number): void {
    this.#count += 1;
    if (requestBytes > SMALL_REQUEST_BYTES) this.#bytes += requestBytes;
  }

  /** Called with the same number of bytes as `opened` was for the call. */
  closed(requestBytes: number): void {
    this.#count -= 1;
    if (requestBytes > SMALL_REQUEST_BYTES) this.#bytes -= requestBytes;
  }
}
