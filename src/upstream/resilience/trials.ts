import type { Clock } from '../../deps.ts';

/** Pause before the first trial. It doubles after each failure, as in the restarts of container platforms. */
const FIRST_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 5 * 60_000;

export interface TrialsOptions {
  /** Tries the server once. Rejects if it does not answer, or when the signal is aborted. */
  readonly attempt: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
}

/**
 * Tries a server that failed, with growing pauses, until it answers. A load balancer sends no clients to a bridge that is
 * not ready, so without trials the bridge would not notice that the server works again.
 */
export class Trials {
  readonly #options: TrialsOptions;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelPause: (() => void) | undefined;
  /** Ends the current trial, if there is one. */
  #trial: AbortController | undefined;
  #isClosed = false;

  constructor(options: TrialsOptions) {
    this.#options = options;
  }

  /** Call this when the server has failed, whether for a trial or for a client. */
  failed(): void {
    if (this.#isClosed || this.#trial !== undefined) return;
    this.#cancelPause ??= this.#options.clock.after(this.#pauseMs, () => {
      this.#cancelPause = undefined;
      this.#pauseMs = Math.min(MAX_PAUSE_MS, 2 * this.#pauseMs);
      void this.#try();
    });
  }

  /** Call this when the server has answered. */
  served(): void {
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** Call this when the server was changed, so that a failed one is tried at once. */
  changed(): void {
    if (this.#cancelPause === undefined) return;
    this.served();
    void this.#try();
  }

  async #try(): Promise<void> {
    const trial = new AbortController();
    this.#trial = trial;
    let hasFailed = false;
    try {
      await this.#options.attempt(trial.signal);
    } catch {
      // The attempt has reported what is wrong.
      hasFailed = true;
    }
    this.#trial = undefined;
    if (hasFailed) this.failed();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelPause?.();
    this.#trial?.abort();
  }
}
