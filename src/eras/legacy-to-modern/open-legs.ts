import type { Frame, JsonRpcId } from '../../wire/frame.ts';

/** One thing the client is being asked for. */
export interface Leg {
  readonly id: number;
  readonly method: string;
  readonly owner: LegOwner;
}

/** Who asks. */
export interface LegOwner {
  /** The client's answer, of either kind; the leg is over. */
  answered(leg: Leg, answer: Frame): void;
  /** The client is at work on it. */
  progressed(): void;
}

/** What one client is being asked for, by the ids the questions have. */
export class OpenLegs {
  readonly #legs = new Map<JsonRpcId, Leg>();
  #lastId = 0;

  open(method: string, owner: LegOwner): Leg {
    this.#lastId += 1;
    const leg: Leg = { id: this.#lastId, method, owner };
    this.#legs.set(leg.id, leg);
    return leg;
  }

  /** Its id is the progress token, too. */
  get(id: JsonRpcId | undefined): Leg | undefined {
    return id === undefined ? undefined : this.#legs.get(id);
  }

  /** The leg that this answer ends. */
  take(id: JsonRpcId | undefined): Leg | undefined {
    const leg = this.get(id);
    if (leg !== undefined) this.#legs.delete(leg.id);
    return leg;
  }

  clear(): void {
    this.#legs.clear();
  }
}
