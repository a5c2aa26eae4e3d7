import { encodeEventId } from '../remote/event-id.ts';
import { isPassing } from '../remote/passing.ts';
import { toRetryPause } from '../remote/retry-pause.ts';

/** [spec WHATWG HTML server-sent events] where the server does not say, a few seconds; a call is waiting, so one. */
const DEFAULT_RETRY_MS = 1000;
const MAX_BACKOFF_MS = 30_000;
/** Failed attempts in a row, over a quarter of a minute; then the call is given up. */
const MAX_FAILURES = 4;

/**
 * When and from where a broken stream is resumed. A server may end its connection at any time after it has sent an
 * event id, and expects the client back after `retry`. [spec 2025-11-25 transports#sending-messages-to-the-server]
 */
export class ResumePlan {
  #lastEventId: string | undefined = undefined;
  /** The pause that the server asked for, which must be respected. */
  retryMs: number | undefined = undefined;
  #failures = -1;

  /** As a header value; undefined: there is nothing to resume from. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /** The stream ended here; undefined when it held no event id: then where it was resumed from still counts. */
  brokeAt(lastEventId: string | undefined): void {
    this.#lastEventId = (lastEventId && encodeEventId(lastEventId)) ?? this.#lastEventId;
    this.#failures = -1;
  }

  progressed(): void {
    this.#failures = -1;
  }

  mayTryAgain(status: number): boolean {
    return isPassing(status);
  }

  /** The pause before the next attempt; undefined: no more attempts. */
  nextDelayMs(): number | undefined {
    this.#failures += 1;
    if (this.#lastEventId === undefined || this.#failures >= MAX_FAILURES) return undefined;
    const backoffMs = this.#failures === 0 ? 0 : Math.min(MAX_BACKOFF_MS, DEFAULT_RETRY_MS * 2 ** this.#failures);
    return toRetryPause(Math.max(this.retryMs ?? DEFAULT_RETRY_MS, backoffMs));
  }
}
