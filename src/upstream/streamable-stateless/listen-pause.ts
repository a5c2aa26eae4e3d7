/** [spec 2026-07-28 basic/patterns/subscriptions#cancellation] a stream that ends unasked may be opened again. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** A server that asks for more patience gets it, up to this. */
const MAX_RETRY_AFTER_MS = 300_000;
/** A stream that ended sooner than this was no success: each new one makes the client look at everything again. */
const SHORT_LIVED_MS = 10_000;

/** How long to wait before a subscription is opened again. */
export class ListenPause {
  #pauseMs = FIRST_PAUSE_MS;

  /** The stream had been open for so long. */
  lived(ms: number): void {
    if (ms >= SHORT_LIVED_MS) this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** `random`, from 0 to 1, keeps clients that lost their streams together from coming back together. */
  next(random: number, retryAfterMs = 0): number {
    const pauseMs = Math.max(this.#pauseMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
    return Math.round(pauseMs * (1 + random / 4));
  }
}
