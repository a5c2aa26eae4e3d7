import { KeptOutcomes } from './kept-outcomes.ts';
import type { StateFault } from './request-state.ts';

export interface ParkingLimits {
  readonly perPrincipal: number;
  readonly total: number;
  /** Of what waiting calls hold, half of it for one caller; and the same again of outcomes. */
  readonly bytes: number;
}

/** Each keeps a call of the server running, and later its outcome. */
export const PARKING_LIMITS: ParkingLimits = { perPrincipal: 32, total: 1024, bytes: 64 * 1024 * 1024 };

/** What is known of a call here. */
export interface Parkable {
  readonly id: string;
  readonly principal: string;
  readonly requestBytes: number;
}

interface CallerShare {
  calls: number;
  bytes: number;
}

/** The calls whose clients are being asked something, or have been a moment ago, by the id in their `requestState`. */
export class ParkedCalls<Call extends Parkable> {
  readonly #limits: ParkingLimits;
  readonly #byId = new Map<string, Call>();
  readonly #shares = new Map<string, CallerShare>();
  readonly outcomes: KeptOutcomes;
  #bytes = 0;

  constructor(limits: ParkingLimits = PARKING_LIMITS, outcomes = new KeptOutcomes(limits.bytes)) {
    this.#limits = limits;
    this.outcomes = outcomes;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** False: there are too many, or they hold too much. A call that is there already stays. */
  admit(call: Call): boolean {
    if (this.#byId.has(call.id)) return true;
    const share = this.#shares.get(call.principal) ?? { calls: 0, bytes: 0 };
    if (!this.#hasRoom(share, call.requestBytes)) return false;
    this.#byId.set(call.id, call);
    this.#shares.set(call.principal, share);
    this.#count(share, call.requestBytes);
    share.calls += 1;
    return true;
  }

  #hasRoom(share: CallerShare, bytes: number): boolean {
    const { perPrincipal, total, bytes: maxBytes } = this.#limits;
    if (share.calls >= perPrincipal || this.#byId.size >= total) return false;
    return share.bytes + bytes <= maxBytes / 2 && this.#bytes + bytes <= maxBytes;
  }

  #count(share: CallerShare, bytes: number): void {
    share.bytes += bytes;
    this.#bytes += bytes;
  }

  find(id: string): Call | undefined {
    return this.#byId.get(id);
  }

  forget(call: Call): void {
    if (!this.#byId.delete(call.id)) return;
    const share = this.#shares.get(call.principal);
    if (share === undefined) return;
    this.#count(share, -call.requestBytes);
    share.calls -= 1;
    if (share.calls === 0) this.#shares.delete(call.principal);
  }

  /** Why there is none by this id, which was of this caller. */
  lossOf(id: string, principal: string): StateFault {
    return this.outcomes.wasGivenUp(id, principal) ? 'state_given_up' : 'state_lost';
  }

  /** A copy: those who end all of them change the table meanwhile. */
  all(): readonly Call[] {
    return [...this.#byId.values()];
  }
}
