import { type HeldBytes, ParkedBytes, type ParkedBytesLimits } from '../../parked-bytes.ts';
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

/** A call in the table. */
export interface Parkable {
  readonly id: string;
  readonly principal: string;
  /** True once the call has ended, and only its outcome is kept. */
  readonly isOver: boolean;
}

interface Entry<Parked> {
  readonly parked: Parked;
  readonly held: HeldBytes;
}

/** The calls whose clients are being asked something, or have been a moment ago, by the id in their `requestState`. */
export class ParkedCalls<Parked extends Parkable> {
  readonly #limits: ParkingLimits;
  readonly #bytes: ParkedBytes;
  readonly #byId = new Map<string, Entry<Parked>>();
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

  /** Calls that have not ended. */
  get open(): number {
    return this.all().filter(({ isOver }) => !isOver).length;
  }

  /**
   * Takes a call that holds so many bytes, or lets one that is here hold so many. False: there are too many calls, or they
   * hold too much; what was here is as it was.
   */
  admit(parked: Parked, bytes: number): boolean {
    const known = this.#byId.get(parked.id);
    if (known !== undefined) return known.held.set(bytes);
    const { perPrincipal, total } = this.#limits;
    const own = this.#callsOf.get(parked.principal) ?? 0;
    if (own >= perPrincipal || this.#byId.size >= total) return false;
    const held = this.#bytes.open(parked.principal);
    if (!held.set(bytes)) return false;
    this.#byId.set(parked.id, { parked, held });
    this.#callsOf.set(parked.principal, own + 1);
    return true;
  }

  /** For what a call of this caller holds besides. Holds nothing yet. */
  openBytes(principal: string): HeldBytes {
    return this.#bytes.open(principal);
  }

  find(id: string): Parked | undefined {
    return this.#byId.get(id)?.parked;
  }

  forget({ id, principal }: Parked): void {
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
  all(): readonly Parked[] {
    return Array.from(this.#byId.values(), ({ parked }) => parked);
  }
}

/** This many outcomes that were given up are remembered as such; there are about as many waiting calls. */
export const MAX_REMEMBERED = 1024;

/** The outcome of a call or a task, with the bytes that have to be kept for it. */
export interface KeptOutcome {
  /** Unguessable, and the one its client comes back with. */
  readonly id: string;
  readonly principal: string;
  readonly bytes: number;
  /** Called when the outcome was evicted. It has left the table already. */
  readonly giveUp: () => void;
}

/**
 * Outcomes that are kept for clients that may come back for them, which they may not. At the limit, the oldest
 * of the caller who takes most of it goes first: nobody loses what is his because somebody else leaves much behind.
 */
export class KeptOutcomes {
  readonly #maxBytes: number;
  /** Each caller's from the oldest on. */
  readonly #ofCaller = new Map<string, Set<KeptOutcome>>();
  readonly #callerBytes = new Map<string, number>();
  /** Ids with their callers, from the oldest on. */
  readonly #givenUp = new Map<string, string>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** May give up others, but not this one: its client has had no chance yet. */
  keep(outcome: KeptOutcome): void {
    while (this.#bytes > 0 && this.#bytes + outcome.bytes > this.#maxBytes) this.#giveUpOldest();
    const own = this.#ofCaller.get(outcome.principal) ?? new Set();
    this.#ofCaller.set(outcome.principal, own.add(outcome));
    this.#count(outcome.principal, outcome.bytes);
  }

  /** Removes an outcome whose time is over. One that is not in the table, or not anymore, may be released, too. */
  release(outcome: KeptOutcome): void {
    const own = this.#ofCaller.get(outcome.principal);
    if (own === undefined || !own.delete(outcome)) return;
    if (own.size === 0) this.#ofCaller.delete(outcome.principal);
    this.#count(outcome.principal, -outcome.bytes);
  }

  /** True only for the caller whose outcome it was: nobody learns anything of the outcomes of others. */
  wasGivenUp(id: string, principal: string): boolean {
    return this.#givenUp.get(id) === principal;
  }

  #giveUpOldest(): void {
    const [greediest] = [...this.#callerBytes].reduce((most, caller) => (caller[1] > most[1] ? caller : most));
    const [oldest] = this.#ofCaller.get(greediest) ?? [];
    if (oldest === undefined) throw new Error('bytes are counted for outcomes that are kept');
    this.release(oldest);
    this.#remember(oldest);
    oldest.giveUp();
  }

  #remember({ id, principal }: KeptOutcome): void {
    this.#givenUp.set(id, principal);
    if (this.#givenUp.size <= MAX_REMEMBERED) return;
    const [first] = this.#givenUp.keys();
    if (first !== undefined) this.#givenUp.delete(first);
  }

  #count(principal: string, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#callerBytes.get(principal) ?? 0) + bytes;
    if (own === 0) this.#callerBytes.delete(principal);
    else this.#callerBytes.set(principal, own);
  }
}
