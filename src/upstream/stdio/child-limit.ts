import { type CapacityShare, SharedCapacity } from '../../collections/shared-capacity.ts';
import { BridgeError } from '../../errors.ts';
import type { Child } from '../../process/child.ts';

export type CountedChild = Pick<Child, 'isEnding' | 'hasFailed' | 'gone'>;

/** A slot for one process, held by the code that is about to start it. */
export interface ChildSlot {
  /** Undefined if the slot is free now. Otherwise it resolves once a process that is ending has gone. */
  readonly free: Promise<void> | undefined;
  /** Assigns the slot to a process. The process counts until its whole process group has gone. */
  fill(child: CountedChild): void;
  /** Gives the slot back without a process. Has no effect once the slot is filled or released. */
  release(): void;
}

/** Limits the number of a server's processes to what the machine can carry. */
export class ChildLimit {
  readonly #max: number;
  /** Capacity shared with other servers. */
  readonly #share: CapacityShare;
  /** Limit on the processes of all replicas together. */
  readonly #wider: WiderChildLimit;
  /** Running processes, and slots that are reserved for one. */
  readonly #taken = new Set<CountedChild | Slot>();
  /** Slots that wait, in order, for processes that are ending. */
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

  /** Processes that may still be running, and those about to be started. */
  get taken(): number {
    return this.#taken.size;
  }

  /** Processes that may still be running. */
  get running(): number {
    let running = 0;
    for (const taken of this.#taken) if (!(taken instanceof Slot)) running += 1;
    return running;
  }

  /** Count of processes that failed: they exited by themselves or hung. */
  get failed(): number {
    return this.#failed;
  }

  /**
   * Reserves a slot for one more process. It is free now, or as soon as a process that is ending has gone, which takes
   * at most its grace period. Throws ERR_SESSION_LIMIT if there is no such process that another slot does not already
   * wait for.
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

/** A limit shared by several bridges. */
export interface WiderChildLimit {
  /** Returns why no more processes may run, or undefined if one may. */
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
