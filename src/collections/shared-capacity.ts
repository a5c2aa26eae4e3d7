/**
 * An amount that several takers share: calls, bytes, processes. Half of it belongs to nobody; the other half is divided
 * among them, and nobody takes of the part of another. So whoever takes all it can leaves the others enough to go on.
 * One more gets its part even while others still hold what was theirs before: for that time it may be more than the total.
 */
export class SharedCapacity {
  readonly #total: number;
  readonly #shares = new Set<CapacityShare>();
  /** What each can take whatever the others have. */
  #own = 0;
  /** What is taken beyond those parts, by all together. */
  #common = 0;

  /** @param total may be infinite */
  constructor(total: number) {
    this.#total = total;
  }

  get total(): number {
    return this.#total;
  }

  /** By all together. */
  get taken(): number {
    let taken = 0;
    for (const share of this.#shares) taken += share.taken;
    return taken;
  }

  /** A part for one more. It is given back by `close`. */
  share(): CapacityShare {
    const share: CapacityShare = new CapacityShare(this, () => {
      this.#shares.delete(share);
      this.#divide();
    });
    this.#shares.add(share);
    this.#divide();
    return share;
  }

  /** How much an amount is beyond the part of whoever has taken it. */
  beyond(taken: number): number {
    return Math.max(0, taken - this.#own);
  }

  isFullFor(taken: number): boolean {
    return taken >= this.#own && this.#common >= this.#total - this.#own * this.#shares.size;
  }

  /** Whether whoever has taken `taken` can take so much more. */
  fits(taken: number, amount: number): boolean {
    const more = this.beyond(taken + amount) - this.beyond(taken);
    return more === 0 || this.#common + more <= this.#total - this.#own * this.#shares.size;
  }

  changed(common: number): void {
    this.#common += common;
  }

  #divide(): void {
    const { size } = this.#shares;
    // Alone there is nobody to leave anything to.
    this.#own = size === 0 ? 0 : size === 1 ? this.#total : Math.floor(this.#total / (2 * size));
    this.#common = 0;
    for (const { taken } of this.#shares) this.#common += this.beyond(taken);
  }
}

/** What one of several takers may have. */
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

  /** Whether so much more can be taken. */
  fits(amount: number): boolean {
    return this.#capacity.fits(this.taken, amount);
  }

  /** Takes the amount whether or not it is full: who must not exceed it looks first. */
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
