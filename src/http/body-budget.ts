import type { IncomingMessage } from 'node:http';

/** Taken of every body without asking: most messages are no larger, and get in whoever else sends slowly. */
export const FREE_BODY_BYTES = 16 * 1024;
/** Largest messages that may be on their way in at the same time; a sender decides how long one takes. */
export const BODIES_AT_A_TIME = 16;

export interface BodyBudgetOptions {
  readonly maxMessageBytes: number;
  /** Whose a request is, where callers have several names: of one caller there may then be half of all. */
  readonly callerOf?: ((request: IncomingMessage) => string) | undefined;
}

/**
 * What all request bodies that are still being read may hold together. Without it every connection could keep one message
 * short of its last byte.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #callerOf: BodyBudgetOptions['callerOf'];
  readonly #byCaller = new Map<string, number>();
  #bytes = 0;

  constructor({ maxMessageBytes, callerOf }: BodyBudgetOptions) {
    this.#maxBytes = BODIES_AT_A_TIME * maxMessageBytes;
    this.#callerOf = callerOf;
  }

  /** Held now, beyond what is free. */
  get bytes(): number {
    return this.#bytes;
  }

  /** For the body of this request. False: there is no room for so much more. */
  take(bytes: number, request: IncomingMessage): boolean {
    if (bytes === 0) return true;
    if (this.#bytes + bytes > this.#maxBytes) return false;
    if (this.#callerOf !== undefined && !this.#takeFor(this.#callerOf(request), bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  #takeFor(caller: string, bytes: number): boolean {
    const held = (this.#byCaller.get(caller) ?? 0) + bytes;
    if (held > this.#maxBytes / 2) return false;
    this.#byCaller.set(caller, held);
    return true;
  }

  give(bytes: number, request: IncomingMessage): void {
    if (bytes === 0) return;
    this.#bytes -= bytes;
    if (this.#callerOf === undefined) return;
    const caller = this.#callerOf(request);
    const held = (this.#byCaller.get(caller) ?? 0) - bytes;
    if (held > 0) this.#byCaller.set(caller, held);
    else this.#byCaller.delete(caller);
  }
}
