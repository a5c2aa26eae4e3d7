import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';

/** More than that is nobody's change of mind: a server that takes nothing is asked for more and more in vain. */
export const MAX_WITHDRAWN_BYTES = 64 * 1024 * 1024;
/** Beyond it one small request goes on now and then: only a call that is given up shows that a server hangs. */
export const TRIAL_MS = 1000;
export const MAX_TRIAL_BYTES = 16 * 1024;

/**
 * Requests that were withdrawn before a full server has taken them. They wait to be written all the same, and count as
 * nobody's open call anymore.
 */
export class WithdrawnRequests {
  readonly #clock: Clock;
  #isFull = false;
  #bytes = 0;
  #nextTrialMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes what the server's link has said to a message, and passes it on. */
  sent(hasCapacity: boolean): boolean {
    this.#isFull ||= !hasCapacity;
    return hasCapacity;
  }

  add(bytes: number): void {
    if (this.#isFull) this.#bytes += bytes;
  }

  /** The server has capacity again, or is another one. */
  clear(): void {
    this.#isFull = false;
    this.#bytes = 0;
  }

  /** Why the server is not asked for this, of so many bytes; undefined: it is. */
  refusalOf(requestBytes: number): BridgeError | undefined {
    if (this.#bytes < MAX_WITHDRAWN_BYTES) return undefined;
    const nowMs = this.#clock.now();
    if (requestBytes > MAX_TRIAL_BYTES || nowMs < this.#nextTrialMs) return TOO_MUCH;
    this.#nextTrialMs = nowMs + TRIAL_MS;
    return undefined;
  }
}

const TOO_MUCH = new BridgeError(
  'ERR_SESSION_BUSY',
  `The server reads nothing, and ${MAX_WITHDRAWN_BYTES} bytes of canceled requests wait for it; try again later.`,
  { retryAfterMs: 1000 },
);
