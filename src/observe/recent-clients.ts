import type { Clock } from '../deps.ts';
import type { ObservedClient } from '../relay/observer.ts';

/** How long a client is remembered after it was new. */
const REMEMBERED_MS = 60 * 60_000;
/** Clients can call themselves anything, so there may be any number of names. */
const MAX_CLIENTS = 1000;

/** Which clients, by what they call themselves, have been seen at a server lately. */
export class RecentClients {
  readonly #clock: Clock;
  /** Until when each is remembered; the one that is forgotten first is at the start. */
  readonly #until = new Map<string, number>();
  #fullUntilMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `too many`: it is not remembered, for there are as many as may be; told once, and then `seen` for a while. */
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
