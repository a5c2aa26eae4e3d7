import type { CallObserver, ParkedCall } from './parked-call.ts';

export interface ParkingLimits {
  readonly perPrincipal: number;
  readonly total: number;
}

/** Each keeps a call of the server running, and later its outcome. */
export const PARKING_LIMITS: ParkingLimits = { perPrincipal: 32, total: 1024 };

/** The calls whose clients are being asked something, or have been a moment ago, by the id in their `requestState`. */
export class ParkedCalls<Observer extends CallObserver> {
  readonly #limits: ParkingLimits;
  readonly #byId = new Map<string, ParkedCall<Observer>>();
  readonly #counts = new Map<string, number>();

  constructor(limits: ParkingLimits = PARKING_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** False: there are too many. A call that is there already stays. */
  admit(call: ParkedCall<Observer>): boolean {
    if (this.#byId.has(call.id)) return true;
    const { principal } = call;
    const count = this.#counts.get(principal) ?? 0;
    if (count >= this.#limits.perPrincipal || this.#byId.size >= this.#limits.total) return false;
    this.#byId.set(call.id, call);
    this.#counts.set(principal, count + 1);
    return true;
  }

  find(id: string): ParkedCall<Observer> | undefined {
    return this.#byId.get(id);
  }

  forget(call: ParkedCall<Observer>): void {
    if (!this.#byId.delete(call.id)) return;
    const count = (this.#counts.get(call.principal) ?? 1) - 1;
    if (count === 0) this.#counts.delete(call.principal);
    else this.#counts.set(call.principal, count);
  }

  /** A copy: those who end all of them change the table meanwhile. */
  all(): readonly ParkedCall<Observer>[] {
    return [...this.#byId.values()];
  }
}
