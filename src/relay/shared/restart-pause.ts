import type { BridgeError } from '../../errors.ts';
import type { Readiness } from '../ports.ts';

/** Pause before a server that ended is started again; a dialer that knows better says so. */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 30_000;
/** A remote server that asks for more patience gets it, up to this: meanwhile nobody is served, if it is back or not. */
const MAX_RETRY_AFTER_MS = 300_000;

/**
 * How long to wait before the next start. The dialer sees processes come and go, but not that one which runs refuses
 * every handshake; so the pause grows here, too, while none succeeds.
 */
export class RestartPause {
  #pauseMs = FIRST_PAUSE_MS;

  /** A handshake succeeded. */
  served(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  next(reason: BridgeError, readiness: Readiness): number {
    const { retryAfterMs } = dialRefusalOf(readiness) ?? reason;
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2);
    // Rounded up: a timer that fires early would find the dialer unwilling once more.
    return Math.ceil(Math.min(retryAfterMs ?? pauseMs, MAX_RETRY_AFTER_MS));
  }
}

/** Why a dialer would refuse to dial now. */
export function dialRefusalOf(readiness: Readiness): BridgeError | undefined {
  return readiness.state === 'refused' ? readiness.error : undefined;
}
