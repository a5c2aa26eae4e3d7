import { ByteQueue } from '../../../collections/bounded-collections.ts';
import type { Clock } from '../../../deps.ts';

/** A client that has not said by then that its handshake is done will not say it. */
const PATIENCE_MS = 10_000;
/** No server has more to ask before anything has begun. */
const MAX_WAITING = 16;
/** Bytes of all waiting questions together. */
export const MAX_WAITING_BYTES = 256 * 1024;
const LIMITS = { maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES };

interface EarlyQuestion {
  readonly ask: () => void;
  /** The size of the question. */
  readonly bytes: number;
}

/**
 * Questions for a client that has not finished its handshake. The server cannot know that, because its own handshake
 * was with the bridge. [spec 2025-11-25 basic/lifecycle#initialization]
 */
export class EarlyQuestions {
  readonly #clock: Clock;
  readonly #waiting = new ByteQueue<EarlyQuestion>(LIMITS, ({ bytes }) => bytes);
  #stopTimer: (() => void) | undefined;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False: one more of this size cannot wait. */
  hasCapacityFor(bytes: number): boolean {
    return this.#isOver || this.#waiting.fits({ bytes, ask: () => {} });
  }

  /** Asks at once where there is nothing to wait for. `bytes`: of the question, within the limit. */
  add(ask: () => void, bytes: number): void {
    if (this.#isOver) return ask();
    this.#stopTimer ??= this.#clock.after(PATIENCE_MS, () => this.letGo());
    this.#waiting.add({ ask, bytes });
  }

  /** Asks all of it, in order, and whatever comes from now on. */
  letGo(): void {
    this.#isOver = true;
    const waiting = this.#waiting.takeAll();
    this.drop();
    for (const { ask } of waiting) ask();
  }

  /** The client is gone. */
  drop(): void {
    this.#waiting.takeAll();
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }
}
