import { BridgeError } from '../errors.ts';
import type { Child } from '../process/child.ts';

/** What of a process matters for the count. */
export type CountedChild = Pick<Child, 'isEnding' | 'gone'>;

/** Room for one process, for whoever is about to start it. */
export interface ChildPlace {
  /** Undefined: there is room now. Otherwise it resolves when there is: a process that is ending is gone then. */
  readonly free: Promise<void> | undefined;
  /** The process counts until nothing of it runs any more. */
  fill(child: CountedChild): void;
  /** No process is started after all. Does nothing once the place is filled or released. */
  release(): void;
}

/** Counts the server processes of the bridge, so that they stay within what the machine was meant to carry. */
export class ChildLimit {
  readonly #max: number;
  /** Processes, and places that are held for one. */
  readonly #taken = new Set<CountedChild | Place>();
  /** They get the places of the processes that are ending, in turn. */
  readonly #waiting: Place[] = [];

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max;
  }

  /**
   * Room for one more process, now or as soon as one that is ending is gone, which takes no longer than its grace period.
   * Throws ERR_SESSION_LIMIT when all of them are to stay.
   */
  reserve(): ChildPlace {
    if (this.#taken.size < this.#max) {
      const place = new Place(undefined, this);
      this.#taken.add(place);
      return place;
    }
    let ending = 0;
    for (const taken of this.#taken) if (!(taken instanceof Place) && taken.isEnding) ending += 1;
    if (ending <= this.#waiting.length) {
      const message = `${this.#max} server processes run, the most allowed; those that are ending count. Try again later, or raise --max-children.`;
      throw new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: 1000 });
    }
    let tell = (): void => {};
    const free = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const place = new Place(free, this, tell);
    this.#waiting.push(place);
    return place;
  }

  /** Called by a place. */
  filled(place: Place, child: CountedChild): void {
    this.#taken.delete(place);
    this.#taken.add(child);
    void child.gone.then(() => this.#vacate(child));
  }

  /** Called by a place. */
  released(place: Place): void {
    const index = this.#waiting.indexOf(place);
    if (index >= 0) this.#waiting.splice(index, 1);
    else this.#vacate(place);
  }

  #vacate(taken: CountedChild | Place): void {
    if (!this.#taken.delete(taken)) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#taken.add(next);
    next.tell();
  }
}

class Place implements ChildPlace {
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
