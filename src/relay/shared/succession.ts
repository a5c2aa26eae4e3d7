import type { Clock } from '../../deps.ts';
import type { UpstreamLink } from '../ports.ts';

/**
 * Sees to it that processes which replace each other never run at the same time: one that has a port, a lock or a
 * database to itself would keep the next one from starting, again and again while it is being ended.
 */
export class Succession {
  readonly #clock: Clock;
  /** Processes that are ending, or have left somebody of their group behind. */
  #leaving = 0;
  #next: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Nothing is in the way of the next process. */
  get isClear(): boolean {
    return this.#leaving === 0;
  }

  /** The process of this link serves no more. */
  follow({ gone }: UpstreamLink): void {
    if (gone === undefined) return;
    this.#leaving += 1;
    void gone.then(() => {
      this.#leaving -= 1;
      this.#proceed();
    });
  }

  /** Calls back after the pause, and not before nothing is in the way; one caller at a time. Returns what cancels it. */
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
