import type { Clock } from '../../src/deps.ts';

interface Timer {
  dueMs: number;
  readonly periodMs: number | undefined;
  readonly run: () => void;
}

/** Time that passes when told to. */
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

  get pendingTimers(): number {
    return this.#timers.size;
  }

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

  #add(timer: Timer): () => void {
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  #nextUntil(endMs: number): Timer | undefined {
    const due = [...this.#timers].filter(({ dueMs }) => dueMs <= endMs);
    return due.sort((one, other) => one.dueMs - other.dueMs)[0];
  }
}
