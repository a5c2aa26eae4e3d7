import type { Clock } from '../deps.ts';

export interface StdioEndingParts {
  readonly clock: Clock;
  /** What open calls have once somebody wants us to end, or nobody reads. */
  readonly graceMs: number;
  /** Resolves when all that was asked is answered and has left for the client; it may take as long as the calls may. */
  readonly answer: () => Promise<void>;
  /** Lets go of client and server. */
  readonly close: () => Promise<void>;
}

/**
 * - `open`: the client may say more.
 * - `answering`: it says no more, but it reads. What it has asked has the time that it would have had anyway.
 * - `leaving`: a signal came, nobody reads, or the server has ended. What is open has the grace time from then.
 * - `closing`: nothing is waited for but the end of the server.
 */
type Stage = 'open' | 'answering' | 'leaving' | 'closing';

/** The end of a bridge with one client on a pair of pipes. Each step may come at any time, and more than once. */
export class StdioEnding {
  readonly #parts: StdioEndingParts;
  #stage: Stage = 'open';
  #stopWaiting = (): void => {};
  readonly #waited = new Promise<void>((resolve) => {
    this.#stopWaiting = resolve;
  });
  #resolveFinished: (finished: Promise<void>) => void = () => {};
  /** Resolves when nothing is left of the server. */
  readonly finished = new Promise<void>((resolve) => {
    this.#resolveFinished = resolve;
  });

  constructor(parts: StdioEndingParts) {
    this.#parts = parts;
  }

  /** The end is near, whatever is still open. */
  get isLeaving(): boolean {
    return this.#stage === 'leaving' || this.#stage === 'closing';
  }

  /** Takes nothing new, and ends when everything is answered. */
  answer(): void {
    if (this.#stage === 'open') this.#begin('answering');
  }

  /** Does what `answer` does within the grace time, which begins with the first call of this method. */
  leave(): void {
    if (this.isLeaving) return;
    const { clock, graceMs } = this.#parts;
    const clear = clock.after(graceMs, () => this.#stopWaiting());
    void this.#waited.then(clear);
    if (this.#stage === 'open') this.#begin('leaving');
    this.#stage = 'leaving';
  }

  /** Waits for nothing any more. */
  close(): void {
    this.#stopWaiting();
    if (this.#stage === 'open') this.#begin('leaving');
  }

  #begin(stage: Stage): void {
    this.#stage = stage;
    this.#resolveFinished(this.#run());
  }

  async #run(): Promise<void> {
    const { answer, close } = this.#parts;
    await Promise.race([answer(), this.#waited]);
    this.#stage = 'closing';
    this.#stopWaiting();
    await close();
  }
}
