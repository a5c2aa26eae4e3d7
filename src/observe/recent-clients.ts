import type { Clock } from '../deps.ts';
import type { ObservedClient } from '../relay/observer.ts';

/** Time for which a client is remembered after it was new. */
const REMEMBERED_MS = 60 * 60_000;
/** Limit of the remembered clients, which can choose any number of names. */
const MAX_CLIENTS = 1000;

/** The clients recently seen at each server, by the names that they give themselves. */
export class RecentClients {
  readonly #clock: Clock;
  /** Time at which each entry expires, in ascending order. */
  readonly #until = new Map<string, number>();
  #fullUntilMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Records a client. `too many` is returned at most once an hour, when the limit keeps a new client from being
   * recorded; in between, such a client counts as `seen`.
   */
  see({ server, name, version }: ObservedClient): 'new' | 'seen' | 'too many' {
    const nowMs = this.#clock.now();
    const key = JSON.stringify([server, name, version]);
    const untilMs = this.#until.get(key);
    if (untilMs !== undefined && nowMs < untilMs) return 'seen';
    this.#forget(nowMs);
    if (this.#until.size < MAX_CLIENTS) {
      this.#until.set(key, nowMs + REMEMBERED_MS);
      return 'new';
    }
    if (nowMs < this.#fullUntilMs) return 'seen';
    this.#fullUntilMs = nowMs + REMEMBERED_MS;
    return 'too many';
  }

  #forget(nowMs: number): void {
    for (const [key, untilMs] of this.#until) {
      if (nowMs < untilMs) return;
      this.#until.delete(key);
    }
  }
}
