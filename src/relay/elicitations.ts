import { RecentNames } from '../collections/recent-names.ts';
import type { Clock } from '../deps.ts';

/** Completions nobody has waited for yet, and characters of their ids; later ones push out the first. */
const COMPLETED_LIMITS = { count: 1000, length: 64 * 1024 };

interface Waiting {
  readonly missing: Set<string>;
  readonly finish: () => void;
}

/**
 * What became of the URLs a server sent its user to. The modern era has no word for it; it only tells the bridge when
 * a call that was refused for it may be tried again. [spec 2025-11-25 client/elicitation#completion-notifications]
 */
export class Elicitations {
  readonly #clock: Clock;
  readonly #completed = new RecentNames<true>(COMPLETED_LIMITS);
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  completed(elicitationId: string): void {
    this.#completed.set(elicitationId, true);
    for (const waiting of [...this.#waiting]) {
      waiting.missing.delete(elicitationId);
      if (waiting.missing.size === 0) waiting.finish();
    }
  }

  /** Calls `run` when all are completed, or when the time is up; never within this call. Returns what stops it. */
  whenCompleted(ids: readonly string[], timeoutMs: number, run: () => void): () => void {
    const missing = new Set(ids.filter((id) => !this.#completed.has(id)));
    const stop = (): void => {
      cancel();
      this.#waiting.delete(waiting);
    };
    const finish = (): void => {
      stop();
      run();
    };
    const waiting: Waiting = { missing, finish };
    const cancel = this.#clock.after(missing.size === 0 ? 0 : timeoutMs, finish);
    this.#waiting.add(waiting);
    return stop;
  }

  close(): void {
    this.#completed.clear();
    this.#waiting.clear();
  }
}
