import { BridgeError } from '../../errors.ts';

/** Each subscription holds a session open. */
export const MAX_LISTENING = 1024;

/** Counts the subscriptions before a legacy server, of each caller and together. */
export class SubscriptionSlots {
  readonly #perCaller: number;
  readonly #ofCaller = new Map<string, number>();
  #taken = 0;

  constructor(perCaller = MAX_LISTENING) {
    this.#perCaller = perCaller;
  }

  /** An error: no slot is free. Each slot that was taken is released once. */
  take(principal: string): BridgeError | undefined {
    const own = this.#ofCaller.get(principal) ?? 0;
    if (own >= this.#perCaller) return tooMany(`This caller has ${own}`);
    if (this.#taken >= MAX_LISTENING) return tooMany(`All callers together have ${MAX_LISTENING}`);
    this.#taken += 1;
    this.#ofCaller.set(principal, own + 1);
    return undefined;
  }

  release(principal: string): void {
    this.#taken -= 1;
    const own = (this.#ofCaller.get(principal) ?? 0) - 1;
    if (own === 0) this.#ofCaller.delete(principal);
    else this.#ofCaller.set(principal, own);
  }
}

function tooMany(what: string): BridgeError {
  const message = `${what} subscriptions at this server, the most allowed; close some, or try again later.`;
  return new BridgeError('ERR_SESSION_BUSY', message);
}
