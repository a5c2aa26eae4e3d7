import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 30_000;
/** This many failures in a row without a response make a crash loop. */
export const CRASH_LOOP_FAILURES = 5;

export interface RestartPolicyOptions {
  /** The server's name in messages. */
  readonly name: string;
  readonly clock: Clock;
  /** Returns a number x with 0 ≤ x < 1; Math.random outside of tests. */
  readonly random: () => number;
  /** Called for each failed start and each response. */
  readonly noted: (outcome: 'failed' | 'served') => void;
}

/**
 * State of the policy. `working`: starts are not limited; `failures` counts the failures in a row since the last
 * response. `crash-looping`: one start per delay is allowed, the next at `untilMs`; a response of any child ends this
 * state.
 */
type PolicyState =
  | { readonly kind: 'working'; readonly failures: number }
  | {
      readonly kind: 'crash-looping';
      readonly failures: number;
      readonly untilMs: number;
      readonly lastError: BridgeError;
    };

/** Attempts to start a server that has not answered yet. */
export interface StartAttempt {
  /** Time of the first failure, or of the latest start if none has failed yet. */
  readonly sinceMs: number;
  /** The reason why the last child did not respond; undefined if one has been started and may still respond. */
  readonly failure: BridgeError | undefined;
}

/**
 * Decides when a server may be started again. Counts over all children of one command, so that a server that cannot run
 * is not started again for each client. Pure: time and randomness are injected.
 */
export class RestartPolicy {
  readonly #options: RestartPolicyOptions;
  #state: PolicyState = { kind: 'working', failures: 0 };
  /** The attempts since the server last answered; undefined if there were none. */
  #attempt: StartAttempt | undefined;
  /** True if a child has responded. A later start is one of a server that is known to work. */
  #hasServed = false;

  constructor(options: RestartPolicyOptions) {
    this.#options = options;
  }

  /** Called before a child is started. Throws ERR_UPSTREAM_CRASH_LOOP if it may not be started now. */
  started(): void {
    const refusal = this.refusal();
    if (refusal !== undefined) throw refusal;
    if (!this.#hasServed && this.#attempt?.failure === undefined) {
      this.#attempt = { sinceMs: this.#options.clock.now(), failure: undefined };
    }
    if (this.#state.kind === 'crash-looping') {
      // This start is a trial. The next one must wait until its outcome can be known.
      this.#state = { ...this.#state, untilMs: this.#options.clock.now() + this.delayMs() };
    }
  }

  /** Called when a child has responded, which proves that the server can run. */
  served(): void {
    this.#state = { kind: 'working', failures: 0 };
    this.#hasServed = true;
    this.#attempt = undefined;
    this.#options.noted('served');
  }

  /** Called when the server was changed, so that earlier failures say nothing of the next start. */
  changed(): void {
    this.#state = { kind: 'working', failures: 0 };
  }

  /**
   * Called when a running child was given up because it did not respond in time. This is no crash, so the next child
   * may be started at once.
   */
  unanswered(error: BridgeError): void {
    this.#noteFailure(error);
    this.#options.noted('failed');
  }

  /**
   * Called when a child could not be started, or ended unexpectedly.
   *
   * @param hasServed true if it had responded before; such an end does not count toward a crash loop
   */
  failed(error: BridgeError, hasServed: boolean): void {
    if (hasServed) {
      if (this.#state.kind === 'working' && this.#state.failures === 0) this.#state = { kind: 'working', failures: 1 };
      return;
    }
    this.#countFailure(error);
    this.#noteFailure(error);
    this.#options.noted('failed');
  }

  #countFailure(error: BridgeError): void {
    const failures = this.#state.failures + 1;
    if (failures < CRASH_LOOP_FAILURES) {
      this.#state = { kind: 'working', failures };
      return;
    }
    const untilMs = this.#options.clock.now() + this.#delayAfter(failures);
    this.#state = { kind: 'crash-looping', failures, untilMs, lastError: error };
  }

  /** The delay before an automatic restart; 0 while there is no failure. */
  delayMs(): number {
    return this.#delayAfter(this.#state.failures);
  }

  #delayAfter(failures: number): number {
    if (failures === 0) return 0;
    const fullMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
    // A random delay between half and all of it, so that many bridges on one machine do not restart at the same time.
    return Math.round(fullMs * (0.5 + this.#options.random() / 2));
  }

  #noteFailure(failure: BridgeError): void {
    const { clock } = this.#options;
    const sinceMs = this.#attempt?.failure === undefined ? clock.now() : this.#attempt.sinceMs;
    this.#attempt = { sinceMs, failure };
  }

  /** The attempts to start the server since it last answered; undefined if there was none, or it has answered. */
  get attempt(): StartAttempt | undefined {
    return this.#attempt;
  }

  /** Returns the error that forbids a start now; undefined if a child may be started. */
  refusal(): BridgeError | undefined {
    if (this.#state.kind === 'working') return undefined;
    const { untilMs, failures, lastError } = this.#state;
    const retryAfterMs = untilMs - this.#options.clock.now();
    // After the delay a start is allowed as a trial.
    if (retryAfterMs <= 0) return undefined;
    const message =
      `Server "${this.#options.name}" failed ${failures} times in a row before it answered anything; ` +
      `it is not started for another ${Math.ceil(retryAfterMs / 1000)} s. Last failure: ${lastError.message}`;
    return new BridgeError('ERR_UPSTREAM_CRASH_LOOP', message, { retryAfterMs, cause: lastError });
  }
}
