import type { Clock } from '../deps.ts';

/** Something with an open response that wants to be looked at now and then. */
export interface Ticking {
  tick(nowMs: number): void;
}

const TICK_MS = 1000;

/**
 * One timer for all open responses of the HTTP face: keep-alive comments, stalled readers, calls that have waited
 * long enough for a stream. A timer each would be two per call.
 */
export class LiveStreams {
  readonly #clock: Clock;
  readonly #members = new Set<Ticking>();
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  add(member: Ticking): void {
    this.#members.add(member);
    this.#stop ??= this.#clock.every(TICK_MS, () => this.#tick());
  }

  delete(member: Ticking): void {
    this.#members.delete(member);
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#members.clear();
  }

  #tick(): void {
    const now = this.#clock.now();
    for (const member of [...this.#members]) member.tick(now);
  }
}
