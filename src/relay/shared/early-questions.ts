import type { Clock } from '../../deps.ts';

/** A client that has not said by then that its handshake is done will not say it. */
const PATIENCE_MS = 10_000;
/** No server has more to ask before anything has begun. */
const MAX_WAITING = 16;
/** Bytes of all waiting questions together. */
export const MAX_WAITING_BYTES = 256 * 1024;

/**
 * What a server asks of a client that has not finished its handshake: the server made its own with the bridge and cannot
 * know. [spec 2025-11-25 basic/lifecycle#initialization]
 */
export class EarlyQuestions {
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];
  #bytes = 0;
  #stopTimer: (() => void) | undefined;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False: one more of this size cannot wait. */
  hasCapacityFor(bytes: number): boolean {
    return this.#isOver || (this.#waiting.length < MAX_WAITING && this.#bytes + bytes <= MAX_WAITING_BYTES);
  }

  /** Asks at once where there is nothing to wait for. `bytes`: of the question, for which there is room. */
  add(ask: () => void, bytes: number): void {
    if (this.#isOver) return ask();
    this.#stopTimer ??= this.#clock.after(PATIENCE_MS, () => this.letGo());
    this.#waiting.push(ask);
    this.#bytes += bytes;
  }

  /** Asks all of it, in order, and whatever comes from now on. */
  letGo(): void {
    this.#isOver = true;
    const waiting = this.#waiting;
    this.drop();
    for (const ask of waiting) ask();
  }

  /** The client is gone. */
  drop(): void {
    this.#waiting = [];
    this.#bytes = 0;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }
}
