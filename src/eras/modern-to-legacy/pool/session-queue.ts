import { LinkedList, ListMember } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import type { ServerListener } from '../../../relay/ports.ts';
import type { SessionWanted } from './session-wanted.ts';

/** Official clients wait a minute for an answer; they shall learn before that why there is none. */
export const LEASE_WAIT_MS = 50_000;

export interface SessionQueueLimits {
  /** Calls that wait for a session. */
  readonly waiting: number;
  /** Calls of one caller that may wait. */
  readonly waitingPerCaller: number;
}

export interface WaitingCallOptions<Session> {
  readonly wanted: SessionWanted;
  readonly listener: ServerListener;
  /** Called once with a session of its own, unless `refused` is called. */
  readonly granted: (session: Session) => void;
  readonly refused: (error: BridgeError) => void;
}

/** A call that waits for a session of its own. */
export class WaitingCall<Session> extends ListMember {
  readonly options: WaitingCallOptions<Session>;
  readonly #left: () => void;
  #isWaiting = true;

  constructor(options: WaitingCallOptions<Session>, left: () => void) {
    super();
    this.options = options;
    this.#left = left;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Takes the call out of the queue, because its client is gone or its turn has come. May be called twice. */
  leave(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#left();
  }
}

/** Calls that wait for a session of their own, first come first served. */
export class SessionQueue<Session> {
  readonly #limits: SessionQueueLimits;
  readonly #clock: Clock;
  readonly #calls = new LinkedList<WaitingCall<Session>>();
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
    return this.#calls.isEmpty;
  }

  /** Throws a BridgeError when too many wait. `tooLate` says why there was none for so long. */
  add(options: WaitingCallOptions<Session>, tooLate: () => BridgeError): WaitingCall<Session> {
    const { caller } = options.wanted;
    const own = this.#perCaller.get(caller) ?? 0;
    const { waiting, waitingPerCaller } = this.#limits;
    if (own >= waitingPerCaller) throw tooMany(waitingPerCaller, ' of this caller');
    if (this.#size >= waiting) throw tooMany(waiting, '');
    const cancelTimer = this.#clock.after(LEASE_WAIT_MS, () => {
      call.leave();
      options.refused(tooLate());
    });
    const call: WaitingCall<Session> = new WaitingCall<Session>(options, () => {
      cancelTimer();
      call.unlink();
      this.#count(caller, -1);
    });
    this.#calls.add(call);
    this.#count(caller, 1);
    return call;
  }

  #count(caller: string, change: 1 | -1): void {
    this.#size += change;
    const own = (this.#perCaller.get(caller) ?? 0) + change;
    if (own === 0) this.#perCaller.delete(caller);
    else this.#perCaller.set(caller, own);
  }

  /** The waiting calls, in the order of arrival. */
  toArray(): readonly WaitingCall<Session>[] {
    return this.#calls.toArray();
  }
}

function tooMany(limit: number, whose: string): BridgeError {
  const message = `${limit} calls${whose} wait for a session of the server, the most that may; try again later.`;
  return new BridgeError('ERR_SESSION_BUSY', message, { retryAfterMs: 1000 });
}
