import { BridgeError } from '../../errors.ts';
import type { Child } from '../../process/child.ts';

/** What of a process matters for the count. */
export type CountedChild = Pick<Child, 'isEnding' | 'gone'>;

/** A slot for one process, held by whoever is about to start it. */
export interface ChildSlot {
  /** Undefined: the slot is free now. Otherwise it resolves when it is: a process that is ending is gone then. */
  readonly free: Promise<void> | undefined;
  /** The process counts until nothing of it runs any more. */
  fill(child: CountedChild): void;
  /** No process is started after all. Does nothing once the slot is filled or released. */
  release(): void;
}

/** Counts the server processes of the bridge, so that they stay within what the machine was meant to carry. */
export class ChildLimit {
  readonly #max: number;
  /** Running processes, and slots that are held for one. */
  readonly #taken = new Set<CountedChild | Slot>();
  /** Slots that wait, in turn, for those of the processes that are ending. */
  readonly #waiting: Slot[] = [];

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  /**
   * A slot for one more process, now or as soon as one that is ending is gone, which takes at most its grace period.
   * Throws ERR_SESSION_LIMIT when all of them are to stay.
   */
  reserve(): ChildSlot {
    if (this.#taken.size < this.#max) {
      const slot = new Slot(undefined, this);
      this.#taken.add(slot);
      return slot;
    }
    let ending = 0;
    for (const taken of this.#taken) if (!(taken instanceof Slot) && taken.isEnding) ending += 1;
    if (ending <= this.#waiting.length) {
      const message = `${this.#max} server processes run, the most allowed; those that are ending count. Try again later, or raise --max-children.`;
      throw new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: 1000 });
    }
    let tell = (): void => {};
    const free = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const slot = new Slot(free, this, tell);
    this.#waiting.push(slot);
    return slot;
  }

  /** Called by a slot. */
  filled(slot: Slot, child: CountedChild): void {
    this.#taken.delete(slot);
    this.#taken.add(child);
    void child.gone.then(() => this.#vacate(child));
  }

  /** Called by a slot. */
  released(slot: Slot): void {
    const index = this.#waiting.indexOf(slot);
    if (index >= 0) this.#waiting.splice(index, 1);
    else this.#vacate(slot);
  }

  #vacate(taken: CountedChild | Slot): void {
    if (!this.#taken.delete(taken)) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#taken.add(next);
    next.tell();
  }
}

class Slot implements ChildSlot {
  readonly free: Promise<void> | undefined;
  readonly tell: () => void;
  readonly #limit: ChildLimit;

  constructor(free: Promise<void> | undefined, limit: ChildLimit, tell: () => void = () => {}) {
    this.free = free;
    this.tell = tell;
    this.#limit = limit;
  }

  fill(child: CountedChild): void {
    this.#limit.filled(this, child);
  }

  release(): void {
    this.#limit.released(this);
  }
}
