export interface ParkedBytesLimits {
  readonly bytes: number;
  /** The part of the bytes that one caller may hold. */
  readonly bytesPerPrincipal: number;
}

/** What one call or task holds. */
export interface HeldBytes {
  /** From now on it holds so many. False: that exceeds the limit, and it holds what it held. Less always fits. */
  set(bytes: number): boolean;
}

/** Counts what calls and tasks hold that wait for their clients: requests, questions, answers, and what servers say meanwhile. */
export class ParkedBytes {
  readonly #limits: ParkedBytesLimits;
  readonly #ofCaller = new Map<string, number>();
  #total = 0;

  constructor(limits: ParkedBytesLimits) {
    this.#limits = limits;
  }

  /** Held by all callers. */
  get total(): number {
    return this.#total;
  }

  /** Holds nothing yet. */
  open(principal: string): HeldBytes {
    let held = 0;
    return {
      set: (bytes) => {
        if (!this.#add(principal, bytes - held)) return false;
        held = bytes;
        return true;
      },
    };
  }

  #add(principal: string, bytes: number): boolean {
    const total = this.#total + bytes;
    const own = (this.#ofCaller.get(principal) ?? 0) + bytes;
    if (bytes > 0 && (own > this.#limits.bytesPerPrincipal || total > this.#limits.bytes)) return false;
    this.#total = total;
    if (own === 0) this.#ofCaller.delete(principal);
    else this.#ofCaller.set(principal, own);
    return true;
  }
}
