import type { Clock } from '../../src/deps.ts';

interface Timer {
  dueMs: number;
  readonly periodMs: number | undefined;
  readonly run: () => void;
}

/** Time that passes only when a test says so. */
export class FakeClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#add({ dueMs: this.#nowMs + delayMs, periodMs: undefined, run });
  }

  every(periodMs: number, run: () => void): () => void {
    return this.#add({ dueMs: this.#nowMs + periodMs, periodMs, run });
  }

  /** Timers nobody has cleared: a test that ends with some has found a leak. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Runs what falls due on the way, in order; timers set meanwhile included. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (let timer = this.#nextUntil(endMs); timer !== undefined; timer = this.#nextUntil(endMs)) {
      this.#nowMs = timer.dueMs;
      if (timer.periodMs === undefined) this.#timers.delete(timer);
      else timer.dueMs += timer.periodMs;
      timer.run();
    }
    this.#nowMs = endMs;
  }

  /** The same in steps, letting promises settle in between: for code that polls. */
  async advanceInSteps(byMs: number, stepMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < byMs; passedMs += stepMs) {
      this.advance(Math.min(stepMs, byMs - passedMs));
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  #add(timer: Timer): () => void {
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  #nextUntil(endMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
    }
    return next;
  }
}
