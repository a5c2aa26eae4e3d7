import type { Clock } from '../deps.ts';
import type { JsonRpcId } from '../wire/frame.ts';
import type { Exchange } from './exchange.ts';

/** Requests of a server one client may have open; more means that nobody answers them. */
export const MAX_OPEN_QUESTIONS = 1024;

/** Requests of a server that its client has not answered, each with the call it was asked for, as far as known. */
export class Questions {
  readonly #clock: Clock;
  readonly #open = new Map<JsonRpcId, Exchange | undefined>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isFull(): boolean {
    return this.#open.size >= MAX_OPEN_QUESTIONS;
  }

  has(id: JsonRpcId): boolean {
    return this.#open.has(id);
  }

  open(id: JsonRpcId, exchange: Exchange | undefined): void {
    // A server that uses an id twice gets one answer; the call that waits for the other must not wait for ever.
    this.close(id);
    this.#open.set(id, exchange);
    if (exchange !== undefined) exchange.openQuestions += 1;
  }

  /** Returns the call it was asked for. That call's time starts anew. */
  close(id: JsonRpcId): Exchange | undefined {
    const exchange = this.#open.get(id);
    this.#open.delete(id);
    if (exchange !== undefined) {
      exchange.openQuestions -= 1;
      exchange.lastActiveMs = this.#clock.now();
    }
    return exchange;
  }

  /** The ids of all that is open, which is forgotten. */
  takeAll(): readonly JsonRpcId[] {
    const ids = [...this.#open.keys()];
    this.#open.clear();
    return ids;
  }
}
