import { type HeldBytes, ParkedBytes, type ParkedBytesLimits } from '../parked-bytes.ts';
import { KeptOutcomes } from './kept-outcomes.ts';
import type { StateFault } from './request-state.ts';

/** Limits the calls that wait for their clients; as many tasks are allowed besides, and as many bytes of outcomes. */
export interface ParkingLimits extends ParkedBytesLimits {
  readonly perPrincipal: number;
  readonly total: number;
}

/** Each keeps a call of the server running, and later its outcome. One caller leaves half to others. */
export const PARKING_LIMITS: ParkingLimits = {
  perPrincipal: 512,
  total: 1024,
  bytesPerPrincipal: 32 * 1024 * 1024,
  bytes: 64 * 1024 * 1024,
};

/** What is known of a call here. */
export interface Parkable {
  readonly id: string;
  readonly principal: string;
}

interface Entry<Call> {
  readonly call: Call;
  readonly held: HeldBytes;
}

/** The calls whose clients are being asked something, or have been a moment ago, by the id in their `requestState`. */
export class ParkedCalls<Call extends Parkable> {
  readonly #limits: ParkingLimits;
  readonly #bytes: ParkedBytes;
  readonly #byId = new Map<string, Entry<Call>>();
  readonly #callsOf = new Map<string, number>();
  readonly outcomes: KeptOutcomes;

  constructor(
    limits: ParkingLimits = PARKING_LIMITS,
    bytes = new ParkedBytes(limits),
    outcomes = new KeptOutcomes(limits.bytes),
  ) {
    this.#limits = limits;
    this.#bytes = bytes;
    this.outcomes = outcomes;
  }

  get size(): number {
    return this.#byId.size;
  }

  /**
   * Takes a call that holds so many bytes, or lets one that is here hold so many. False: there are too many calls, or they
   * hold too much; what was here is as it was.
   */
  admit(call: Call, bytes: number): boolean {
    const known = this.#byId.get(call.id);
    if (known !== undefined) return known.held.set(bytes);
    const { perPrincipal, total } = this.#limits;
    const own = this.#callsOf.get(call.principal) ?? 0;
    if (own >= perPrincipal || this.#byId.size >= total) return false;
    const held = this.#bytes.open(call.principal);
    if (!held.set(bytes)) return false;
    this.#byId.set(call.id, { call, held });
    this.#callsOf.set(call.principal, own + 1);
    return true;
  }

  /** For what a call of this caller holds besides. Holds nothing yet. */
  openBytes(principal: string): HeldBytes {
    return this.#bytes.open(principal);
  }

  find(id: string): Call | undefined {
    return this.#byId.get(id)?.call;
  }

  forget({ id, principal }: Call): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    this.#byId.delete(id);
    entry.held.set(0);
    const own = (this.#callsOf.get(principal) ?? 0) - 1;
    if (own === 0) this.#callsOf.delete(principal);
    else this.#callsOf.set(principal, own);
  }

  /** Why there is none by this id, which was of this caller. */
  lossOf(id: string, principal: string): StateFault {
    return this.outcomes.wasGivenUp(id, principal) ? 'state_given_up' : 'state_lost';
  }

  /** A copy: those who end all of them change the table meanwhile. */
  all(): readonly Call[] {
    return Array.from(this.#byId.values(), ({ call }) => call);
  }
}
