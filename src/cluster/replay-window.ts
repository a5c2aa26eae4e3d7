/** How far messages may overtake each other on several connections. */
const WINDOW = 8192;
const BITS = 32;

/** Takes each number once, in about the order in which they count up; one that comes too late counts as taken. */
export class ReplayWindow {
  readonly #taken = new Uint32Array(WINDOW / BITS);
  #highest = -1;

  /** False: it has been taken before, or may have been. */
  take(number: number): boolean {
    if (number <= this.#highest - WINDOW) return false;
    if (number > this.#highest) {
      const from = Math.max(this.#highest + 1, number - WINDOW + 1);
      for (let passed = from; passed <= number; passed += 1) this.#clear(passed);
      this.#highest = number;
    }
    const slot = number % WINDOW;
    const index = Math.floor(slot / BITS);
    const bit = (1 << (slot % BITS)) >>> 0;
    const word = this.#taken[index] ?? 0;
    if ((word & bit) !== 0) return false;
    this.#taken[index] = word | bit;
    return true;
  }

  #clear(number: number): void {
    const slot = number % WINDOW;
    const index = Math.floor(slot / BITS);
    this.#taken[index] = (this.#taken[index] ?? 0) & ~((1 << (slot % BITS)) >>> 0);
  }
}
