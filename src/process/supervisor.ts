import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 30_000;
/** Failures in a row, none of which followed an answer, that make a crash loop. */
export const CRASH_LOOP_FAILURES = 5;

export interface RestartPolicyOptions {
  /** How the server is called in messages. */
  readonly name: string;
  readonly clock: Clock;
  /** 0 ≤ x < 1; Math.random outside tests. */
  readonly random: () => number;
  /** Called with each start that fails, and each answer. */
  readonly noted: (outcome: 'failed' | 'served') => void;
}

/**
 * - `working`: starts are free; `failures` counts those in a row without an answer since.
 * - `crash-looping`: one start per delay is let through, at `untilMs` the next; an answer of any child ends it.
 */
type PolicyState =
  | { readonly kind: 'working'; readonly failures: number }
  | {
      readonly kind: 'crash-looping';
      readonly failures: number;
      readonly untilMs: number;
      readonly lastError: BridgeError;
    };

/**
 * Decides when a server may be started again. Counts over all children of one command, so that a server that cannot
 * run is not started once more by every client that asks. Pure: time and chance come from outside.
 */
export class RestartPolicy {
  readonly #options: RestartPolicyOptions;
  #state: PolicyState = { kind: 'working', failures: 0 };
  /** Why the last start came to nothing; undefined: it did not, or there was none. */
  #failure: BridgeError | undefined;

  constructor(options: RestartPolicyOptions) {
    this.#options = options;
  }

  /** A child is about to be started. Throws ERR_UPSTREAM_CRASH_LOOP when it may not. */
  started(): void {
    const refusal = this.refusal();
    if (refusal !== undefined) throw refusal;
    if (this.#state.kind === 'crash-looping') {
      // This start is the trial; the next one has to wait until its outcome can be known.
      this.#state = { ...this.#state, untilMs: this.#options.clock.now() + this.delayMs() };
    }
  }

  /** A child answered something: the server can run. */
  served(): void {
    this.#state = { kind: 'working', failures: 0 };
    this.#failure = undefined;
    this.#options.noted('served');
  }

  /**
   * A child runs, and was given up because it has answered nothing in all of its time. That is no crash: the next one may
   * be started at once.
   */
  unanswered(error: BridgeError): void {
    this.#failure = error;
    this.#options.noted('failed');
  }

  /**
   * A child could not be started, or ended though nobody wanted it to.
   * @param hasServed it had answered something before; such an end never adds up to a crash loop
   */
  failed(error: BridgeError, hasServed: boolean): void {
    if (hasServed) {
      if (this.#state.kind === 'working' && this.#state.failures === 0) this.#state = { kind: 'working', failures: 1 };
      return;
    }
    this.#countFailure(error);
    this.#failure = error;
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

  /** The pause before an automatic restart; 0 while nothing has failed. */
  delayMs(): number {
    return this.#delayAfter(this.#state.failures);
  }

  #delayAfter(failures: number): number {
    if (failures === 0) return 0;
    const fullMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
    // Between half and all of it, so that many bridges on one machine do not restart in step.
    return Math.round(fullMs * (0.5 + this.#options.random() / 2));
  }

  /** Why the last child did not serve, until one does. */
  get failure(): BridgeError | undefined {
    return this.#failure;
  }

  /** Why no child may be started now; undefined: one may. */
  refusal(): BridgeError | undefined {
    if (this.#state.kind === 'working') return undefined;
    const { untilMs, failures, lastError } = this.#state;
    const retryAfterMs = untilMs - this.#options.clock.now();
    // Once the wait is over a call is let through.
    if (retryAfterMs <= 0) return undefined;
    const message =
      `Server "${this.#options.name}" failed ${failures} times in a row before it answered anything; ` +
      `it is not started for another ${Math.ceil(retryAfterMs / 1000)} s. Last failure: ${lastError.message}`;
    return new BridgeError('ERR_UPSTREAM_CRASH_LOOP', message, { retryAfterMs, cause: lastError });
  }
}
