import { SeenEvents } from '../server-messages.ts';
import { encodeEventId, toRetryPause } from './event-stream-reader.ts';

/**
 * Pause before a resumption if the server asks for none. [spec WHATWG HTML server-sent events] suggests a few seconds;
 * since a call is waiting, it is one second.
 */
const DEFAULT_RETRY_MS = 1000;
const MAX_BACKOFF_MS = 30_000;
/** Consecutive failed attempts after which the call is given up. They take about a quarter of a minute. */
const MAX_FAILURES = 4;

/**
 * Decides when and from which event the broken stream of one call is resumed, and recognizes the events that the server
 * then repeats. A server may end its connection at any time after it has sent an event id, and expects the client back
 * after `retry`. [spec 2025-11-25 transports#sending-messages-to-the-server]
 */
export class Resumption {
  readonly #seen = new SeenEvents();
  #lastEventId: string | undefined = undefined;
  #failures = -1;

  /** Id of the last event as a header value, or undefined if there is nothing to resume from. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /**
   * Call this when the stream has ended. If it held no event id, the id that it was resumed from is kept. Returns false
   * if there is nothing to resume from.
   */
  brokeAt(lastEventId: string | undefined): boolean {
    this.#lastEventId = (lastEventId && encodeEventId(lastEventId)) ?? this.#lastEventId;
    this.#failures = -1;
    return this.#lastEventId !== undefined;
  }

  /**
   * Returns the pause before the next attempt, or undefined if there is none.
   * @param retryMs pause that the server asked for
   */
  nextDelayMs(retryMs = DEFAULT_RETRY_MS): number | undefined {
    this.#failures += 1;
    if (this.#lastEventId === undefined || this.#failures >= MAX_FAILURES) return undefined;
    const backoffMs = this.#failures === 0 ? 0 : Math.min(MAX_BACKOFF_MS, DEFAULT_RETRY_MS * 2 ** this.#failures);
    return toRetryPause(Math.max(retryMs, backoffMs));
  }

  /** Call this when the server has resumed the stream. */
  resumed(): void {
    this.#seen.resumed();
  }

  /** Notes an event, which shows that the attempts succeed. Returns true if it was received before the stream broke. */
  isRepeated(eventId: string | undefined): boolean {
    if (this.#seen.isRepeated(eventId)) return true;
    this.#failures = -1;
    return false;
  }
}
