import type { ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';

/** A stream whose connection may be replaced by a new one. */
interface Connected {
  readonly isConnected: boolean;
  /** Ends the connection at once and drops what is unsent. */
  cut(): void;
}

/**
 * Limits the responses of one session that are event streams or, like those of calls, may become one at any time. Each
 * holds a connection and the data that its client has not read.
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
   * Takes a slot until the response is closed. Returns an error if none is free. `continued` is the stream that this
   * response continues: its earlier connection, which may well be dead, is cut if no other slot is free.
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
