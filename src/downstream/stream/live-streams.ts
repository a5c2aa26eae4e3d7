import { LinkedList, type ListNode } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';

/** Something with an open response that wants to be looked at now and then. */
export interface Ticking {
  tick(nowMs: number): void;
  /** Written to its response, and not taken by the system yet. */
  readonly unsentBytes: number;
}

const TICK_MS = 1000;

/**
 * One timer for all open responses of the HTTP server: keep-alive comments, stalled readers, calls that have waited
 * long enough for a stream. A timer each would be two per call.
 */
export class LiveStreams {
  readonly #clock: Clock;
  #members = new LinkedList<Ticking>();
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  /** What all open responses together have not sent. */
  get unsentBytes(): number {
    return this.#members.toArray().reduce((sum, member) => sum + member.unsentBytes, 0);
  }

  /** The member ticks until its node is removed. */
  add(member: Ticking): ListNode<Ticking> {
    this.#stop ??= this.#clock.every(TICK_MS, () => this.#tick());
    return this.#members.add(member);
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#members = new LinkedList();
  }

  #tick(): void {
    const now = this.#clock.now();
    for (const member of this.#members.toArray()) member.tick(now);
  }
}
