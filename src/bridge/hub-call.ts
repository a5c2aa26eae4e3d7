import type { Deps } from '../deps.ts';
import { type BridgeError, toBridgeError } from '../errors.ts';
import type { InspectedHub } from '../observe/inspection.ts';

/** Pause before the next attempt, doubled after each attempt that fails. */
const FIRST_PAUSE_MS = 1000;
/** Longest pause, whatever the hub requests: a device that stays offline for days looks broken. */
const MAX_PAUSE_MS = 60_000;
/**
 * A connection that lasted this long counts as a success. One that ends at once may be the hub's way of rejecting it.
 */
const GOOD_AFTER_MS = 30_000;

/** A place where clients wait for servers to connect. */
export interface Hub {
  /** The hub, as it may be shown. */
  readonly name: string;
  /**
   * Opens a connection, and serves the clients there until it ends. Rejects with a BridgeError if it cannot be tried; later
   * failures are events. There is one attempt or connection at a time.
   */
  open(events: HubEvents): Promise<HubAttempt>;
  /** Called when no connection will be opened anymore. An open connection is left to those that it serves. */
  close(): void;
}

export interface HubEvents {
  /** The connection is open, and its clients are served. */
  opened(): void;
  /** The connection has failed to open. */
  failed(error: BridgeError): void;
  /** An open connection has ended. `how` completes a sentence about it. */
  ended(how: string): void;
}

export interface HubAttempt {
  /** Gives up a connection that is not open. */
  abort(): void;
}

export interface HubCallOptions {
  readonly hub: Hub;
  readonly deps: Pick<Deps, 'clock' | 'log'>;
  /** Returns a number from 0 to 1, so that bridges that lost the same hub do not reconnect at the same moment. */
  readonly random: () => number;
}

interface Calling {
  readonly kind: 'calling';
  /** Undefined until the attempt has begun. */
  attempt: HubAttempt | undefined;
}

/**
 * - `calling`: a connection is being opened.
 * - `connected`: the clients at the hub are served.
 * - `pausing`: the last attempt failed or the connection ended; the next attempt follows.
 * - `closed`: no further attempt is made.
 */
type State =
  | Calling
  | { readonly kind: 'connected'; readonly sinceMs: number }
  | { readonly kind: 'pausing'; readonly problem: string; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/** The bridge's connection to a hub where clients wait, which is opened anew whenever it ends. */
export class HubCall {
  readonly #options: HubCallOptions;
  #pauseMs = FIRST_PAUSE_MS;
  /** The latest problem that was logged; a repetition is logged at the debug level. */
  #told: string | undefined;
  #state: State = { kind: 'calling', attempt: undefined };

  constructor(options: HubCallOptions) {
    this.#options = options;
    void this.#call();
  }

  inspect(): InspectedHub {
    const { kind } = this.#state;
    return {
      url: this.#options.hub.name,
      state: kind === 'connected' ? 'connected' : 'calling',
      problem: this.#state.kind === 'pausing' ? this.#state.problem : undefined,
    };
  }

  /** Makes no further attempts. An open connection is left to those that it serves, who end it. */
  close(): void {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    if (state.kind === 'calling') state.attempt?.abort();
    if (state.kind === 'pausing') state.cancel();
    this.#options.hub.close();
  }

  get #isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  async #call(): Promise<void> {
    const calling: Calling = { kind: 'calling', attempt: undefined };
    this.#state = calling;
    const events: HubEvents = {
      opened: () => {
        if (this.#state === calling) this.#opened();
      },
      failed: (error) => {
        if (this.#state === calling) this.#failed(error);
      },
      ended: (how) => this.#ended(how),
    };
    try {
      const attempt = await this.#options.hub.open(events);
      calling.attempt = attempt;
      if (this.#isClosed) attempt.abort();
    } catch (thrown) {
      if (this.#state === calling) this.#failed(toBridgeError(thrown));
    }
  }

  #opened(): void {
    const { hub, deps } = this.#options;
    this.#state = { kind: 'connected', sinceMs: deps.clock.now() };
    this.#told = undefined;
    deps.log.info(`connected to ${hub.name}; serving its clients`);
  }

  #ended(how: string): void {
    const { hub, deps } = this.#options;
    if (this.#state.kind !== 'connected') return;
    if (deps.clock.now() - this.#state.sinceMs >= GOOD_AFTER_MS) this.#pauseMs = FIRST_PAUSE_MS;
    this.#pause(`the connection to ${hub.name} ended: ${how}`, 'info', 0);
  }

  #failed(error: BridgeError): void {
    this.#pause(error.message.replace(/\.$/, ''), 'warn', error.retryAfterMs ?? 0);
  }

  #pause(problem: string, level: 'info' | 'warn', atLeastMs: number): void {
    const { deps, random } = this.#options;
    const usualMs = Math.round(this.#pauseMs * (0.5 + random() / 2));
    const pauseMs = Math.min(Math.max(atLeastMs, usualMs), MAX_PAUSE_MS);
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    const isNews = problem !== this.#told;
    this.#told = problem;
    deps.log[isNews ? level : 'debug'](`${problem}; calling again in ${(pauseMs / 1000).toFixed(1)} s`);
    const cancel = deps.clock.after(pauseMs, () => void this.#call());
    this.#state = { kind: 'pausing', problem, cancel };
  }
}
