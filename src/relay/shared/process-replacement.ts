import type { Clock } from '../../deps.ts';
import type { UpstreamLink } from '../ports.ts';

/**
 * Sees to it that processes which replace each other never run at the same time: one that has a port, a lock or a
 * database to itself would keep the next one from starting, again and again while it is being ended.
 */
export class ProcessReplacement {
  readonly #clock: Clock;
  /** Counts the processes that are ending, or that have left others of their group behind. */
  #ending = 0;
  #next: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True: the next process may start. */
  get isClear(): boolean {
    return this.#ending === 0;
  }

  /** Called when the process of this link serves no more: the next one waits until nothing of it runs. */
  awaitExit({ process }: UpstreamLink): void {
    if (process === undefined) return;
    this.#ending += 1;
    void process.gone.then(() => {
      this.#ending -= 1;
      this.#proceed();
    });
  }

  /** Calls `start` after the pause and once `isClear`; one caller at a time. Returns what cancels it. */
  after(pauseMs: number, start: () => void): () => void {
    const cancelPause = this.#clock.after(pauseMs, () => {
      this.#next = start;
      this.#proceed();
    });
    return () => {
      cancelPause();
      this.#next = undefined;
    };
  }

  #proceed(): void {
    if (!this.isClear) return;
    const next = this.#next;
    this.#next = undefined;
    next?.();
  }
}
