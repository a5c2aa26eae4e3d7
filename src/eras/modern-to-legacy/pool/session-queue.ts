import { LinkedList, ListedValue } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import type { SessionUser } from './session-user.ts';

/** Official clients wait a minute for an answer; they shall learn before that why there is none. */
export const LEASE_WAIT_MS = 50_000;

export interface SessionQueueLimits {
  /** Calls that wait for a session. */
  readonly waiting: number;
  /** Calls of one caller that may wait. */
  readonly waitingPerCaller: number;
}

/** Calls that wait for a session of their own, first come first served. */
export class SessionQueue {
  readonly #limits: SessionQueueLimits;
  readonly #clock: Clock;
  readonly #users = new LinkedList<ListedValue<SessionUser>>();
  readonly #perCaller = new Map<string, number>();
  #size = 0;

  constructor(limits: SessionQueueLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  get isEmpty(): boolean {
    return this.#users.isEmpty;
  }

  /** Throws a BridgeError when too many wait. `tooLate` says why there was none for so long. */
  add(user: SessionUser, tooLate: () => BridgeError): void {
    const { caller } = user.wanted;
    const own = this.#perCaller.get(caller) ?? 0;
    const { waiting, waitingPerCaller } = this.#limits;
    if (own >= waitingPerCaller) throw tooMany(waitingPerCaller, ' of this caller');
    if (this.#size >= waiting) throw tooMany(waiting, '');
    const place = new ListedValue(user);
    const cancelTimer = this.#clock.after(LEASE_WAIT_MS, () => user.refused(tooLate()));
    this.#users.add(place);
    this.#count(caller, 1);
    user.queued(() => {
      cancelTimer();
      place.unlink();
      this.#count(caller, -1);
    });
  }

  #count(caller: string, change: 1 | -1): void {
    this.#size += change;
    const own = (this.#perCaller.get(caller) ?? 0) + change;
    if (own === 0) this.#perCaller.delete(caller);
    else this.#perCaller.set(caller, own);
  }

  /** The calls that wait, in the order of arrival. */
  toArray(): readonly SessionUser[] {
    return this.#users.toArray().map(({ value }) => value);
  }
}

function tooMany(limit: number, whose: string): BridgeError {
  const message = `${limit} calls${whose} wait for a session of the server, the most that may; try again later.`;
  return new BridgeError('ERR_SESSION_BUSY', message, { retryAfterMs: 1000 });
}
