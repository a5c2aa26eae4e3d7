import { type CapacityShare, SharedCapacity } from '../../collections/shared-capacity.ts';
import { BridgeError } from '../../errors.ts';
import type { Child } from '../../process/child.ts';

/** What of a process matters for the count. */
export type CountedChild = Pick<Child, 'isEnding' | 'hasFailed' | 'gone'>;

/** A slot for one process, held by whoever is about to start it. */
export interface ChildSlot {
  /** Undefined: the slot is free now. Otherwise it resolves when it is: a process that is ending is gone then. */
  readonly free: Promise<void> | undefined;
  /** The process counts until nothing of it runs any more. */
  fill(child: CountedChild): void;
  /** No process is started after all. Does nothing once the slot is filled or released. */
  release(): void;
}

/** Counts the processes of a server, so that all together stay within what the machine was meant to carry. */
export class ChildLimit {
  readonly #max: number;
  /** What is left beside other servers. */
  readonly #share: CapacityShare;
  /** What all replicas together may have. */
  readonly #wider: WiderChildLimit;
  /** Running processes, and slots that are held for one. */
  readonly #taken = new Set<CountedChild | Slot>();
  /** Slots that wait, in turn, for those of the processes that are ending. */
  readonly #waiting: Slot[] = [];
  #failed = 0;

  constructor(
    max = Number.POSITIVE_INFINITY,
    share = new SharedCapacity(Number.POSITIVE_INFINITY).share(),
    wider: WiderChildLimit = NO_WIDER_LIMIT,
  ) {
    this.#max = max;
    this.#share = share;
    this.#wider = wider;
  }

  /** Processes of which something may still run, and those that are about to be started. */
  get taken(): number {
    return this.#taken.size;
  }

  /** Processes of which something may still run. */
  get running(): number {
    let running = 0;
    for (const taken of this.#taken) if (!(taken instanceof Slot)) running += 1;
    return running;
  }

  /** Processes that are gone because they failed: they exited by themselves, or hung. */
  get failed(): number {
    return this.#failed;
  }

  /**
   * A slot for one more process, now or as soon as one that is ending is gone, which takes at most its grace period.
   * Throws ERR_SESSION_LIMIT when all of them are to stay.
   */
  reserve(): ChildSlot {
    const wider = this.#wider.refusal();
    if (this.#taken.size < this.#max && !this.#share.isFull && wider === undefined) {
      const slot = new Slot(undefined, this);
      this.#take(slot);
      return slot;
    }
    let ending = 0;
    for (const taken of this.#taken) if (!(taken instanceof Slot) && taken.isEnding) ending += 1;
    if (ending <= this.#waiting.length) {
      if (wider !== undefined) throw wider;
      const message = `${this.#taken.size} server processes run, the most allowed; those that are ending count. Try again later, or raise --max-children.`;
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
    // The process takes over the slot.
    this.#taken.add(child);
    void child.gone.then(() => {
      if (child.hasFailed) this.#failed += 1;
      this.#vacate(child);
    });
  }

  /** Called by a slot. */
  released(slot: Slot): void {
    const index = this.#waiting.indexOf(slot);
    if (index >= 0) this.#waiting.splice(index, 1);
    else this.#vacate(slot);
  }

  #vacate(taken: CountedChild | Slot): void {
    if (!this.#taken.delete(taken)) return;
    this.#share.give(1);
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#take(next);
    next.tell();
  }

  #take(slot: Slot): void {
    this.#taken.add(slot);
    this.#share.take(1);
  }
}

/** A limit that holds for several bridges. */
export interface WiderChildLimit {
  /** Why there may be no more processes; undefined: there may. */
  refusal(): BridgeError | undefined;
}

const NO_WIDER_LIMIT: WiderChildLimit = { refusal: () => undefined };

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
