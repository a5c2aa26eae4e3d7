import type { ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';

/** What may make way for a new connection of its own. */
interface Connected {
  readonly isConnected: boolean;
  /** Ends the connection at once, whatever has not been read. */
  cut(): void;
}

/**
 * Counts the responses of one session that are event streams or, as those of calls, may become one at any time. Each
 * holds a connection, and what its client has not read.
 */
export class StreamSlots {
  readonly #limit: number;
  readonly #clock: Clock;
  #taken = 0;
  #emptyAtMs: number;
  readonly #release = (): void => {
    this.#taken -= 1;
    if (this.#taken === 0) this.#emptyAtMs = this.#clock.now();
  };

  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
    this.#emptyAtMs = clock.now();
  }

  /** The time at which the last open response closed; undefined: one is open. */
  get emptySinceMs(): number | undefined {
    return this.#taken > 0 ? undefined : this.#emptyAtMs;
  }

  /**
   * Takes a slot for as long as the response is open, read to its end or not. An error: there is none. `continued` is
   * the stream that goes on with this response: a connection that it has already, which may well be dead, makes way.
   */
  take(response: ServerResponse, continued?: Connected): BridgeError | undefined {
    if (this.#taken >= this.#limit) {
      if (!continued?.isConnected) return this.#limitReached();
      continued.cut();
    }
    this.#taken += 1;
    response.on('close', this.#release);
    return undefined;
  }

  #limitReached(): BridgeError {
    const message = `This session has ${this.#limit} event streams, calls that wait for an answer included, the most allowed; wait for answers or close streams before opening more, or raise --max-session-streams.`;
    return new BridgeError('ERR_SESSION_BUSY', message, { retryAfterMs: 1000 });
  }
}
