/**
 * A capacity of calls, bytes or processes that several users share. Half of it is common; the other half is divided
 * into guaranteed parts, of which no other user can take anything. A user that takes as much as it can therefore leaves
 * the others their parts. A new user gets its part at once, even while others still hold more than theirs; until they
 * release it, the total may be exceeded.
 */
export class SharedCapacity {
  readonly #total: number;
  readonly #shares = new Set<CapacityShare>();
  /** The guaranteed part of each user. */
  #own = 0;
  /** The amount that all users together have taken beyond their guaranteed parts. */
  #common = 0;

  /** @param total may be infinite */
  constructor(total: number) {
    this.#total = total;
  }

  get total(): number {
    return this.#total;
  }

  /** The amount that all users together have taken. */
  get taken(): number {
    let taken = 0;
    for (const share of this.#shares) taken += share.taken;
    return taken;
  }

  /** Adds a user. Its `close` removes it. */
  share(): CapacityShare {
    const share: CapacityShare = new CapacityShare(this, () => {
      this.#shares.delete(share);
      this.#divide();
    });
    this.#shares.add(share);
    this.#divide();
    return share;
  }

  /** The part of a user's amount that exceeds its guaranteed part. */
  beyond(taken: number): number {
    return Math.max(0, taken - this.#own);
  }

  isFullFor(taken: number): boolean {
    return taken >= this.#own && this.#common >= this.#total - this.#own * this.#shares.size;
  }

  /** Returns true if a user that holds `taken` can take this amount in addition. */
  fits(taken: number, amount: number): boolean {
    const more = this.beyond(taken + amount) - this.beyond(taken);
    return more === 0 || this.#common + more <= this.#total - this.#own * this.#shares.size;
  }

  changed(common: number): void {
    this.#common += common;
  }

  #divide(): void {
    const { size } = this.#shares;
    // A single user gets everything.
    this.#own = size === 0 ? 0 : size === 1 ? this.#total : Math.floor(this.#total / (2 * size));
    this.#common = 0;
    for (const { taken } of this.#shares) this.#common += this.beyond(taken);
  }
}

/** The share that a single user has of a SharedCapacity. */
export class CapacityShare {
  readonly #capacity: SharedCapacity;
  readonly close: () => void;
  taken = 0;

  constructor(capacity: SharedCapacity, close: () => void) {
    this.#capacity = capacity;
    this.close = close;
  }

  get isFull(): boolean {
    return this.#capacity.isFullFor(this.taken);
  }

  get total(): number {
    return this.#capacity.total;
  }

  /** Returns true if this amount can be taken in addition. */
  fits(amount: number): boolean {
    return this.#capacity.fits(this.taken, amount);
  }

  /**
   * Takes the amount even if there is not enough left. Callers that must respect the limit check `fits` or `isFull`
   * first.
   */
  take(amount: number): void {
    this.#change(amount);
  }

  give(amount: number): void {
    this.#change(-amount);
  }

  #change(amount: number): void {
    const before = this.#capacity.beyond(this.taken);
    this.taken += amount;
    const change = this.#capacity.beyond(this.taken) - before;
    if (change !== 0) this.#capacity.changed(change);
  }
}
