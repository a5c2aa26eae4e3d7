import type { Clock } from '../deps.ts';

/** Quiet time after which files count as settled. A build writes many files in a row. */
export const SETTLED_MS = 100;
/** Limit of the wait for a quiet moment. A program that writes all the time must not postpone a restart for ever. */
export const MAX_UNSETTLED_MS = 2000;
/** Names of changed files that are told apart. The number is only for people. */
const MAX_NAMES = 10_000;

/** Gathers changes until nothing has changed for a moment. */
export class SettledChanges {
  readonly #clock: Clock;
  readonly #settled: (paths: ReadonlySet<string>) => void;
  readonly #paths = new Set<string>();
  #firstMs = 0;
  #cancel: (() => void) | undefined;

  /** @param settled called with the paths that have changed since the last time */
  constructor(clock: Clock, settled: (paths: ReadonlySet<string>) => void) {
    this.#clock = clock;
    this.#settled = settled;
  }

  add(path: string): void {
    const nowMs = this.#clock.now();
    if (this.#paths.size === 0) this.#firstMs = nowMs;
    if (this.#paths.size < MAX_NAMES) this.#paths.add(path);
    this.#cancel?.();
    const leftMs = Math.max(0, this.#firstMs + MAX_UNSETTLED_MS - nowMs);
    this.#cancel = this.#clock.after(Math.min(SETTLED_MS, leftMs), () => this.#settle());
  }

  #settle(): void {
    this.#cancel = undefined;
    const paths = new Set(this.#paths);
    this.#paths.clear();
    this.#settled(paths);
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
