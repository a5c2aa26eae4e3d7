import type { Frame, JsonRpcId } from '../../wire/frame.ts';

/** One thing the client is being asked for. */
export interface Leg {
  readonly id: number;
  readonly method: string;
  /** The client's answer, of either kind; the leg is over. */
  answered(answer: Frame): void;
}

/** What one client is being asked for, by the ids the questions have. */
export class OpenLegs {
  readonly #legs = new Map<JsonRpcId, Leg>();
  #lastId = 0;

  open(method: string, answered: (leg: Leg, answer: Frame) => void): Leg {
    this.#lastId += 1;
    const leg: Leg = { id: this.#lastId, method, answered: (answer) => answered(leg, answer) };
    this.#legs.set(leg.id, leg);
    return leg;
  }

  /** The leg that this answer ends. */
  take(id: JsonRpcId | undefined): Leg | undefined {
    const leg = id === undefined ? undefined : this.#legs.get(id);
    if (leg !== undefined) this.#legs.delete(leg.id);
    return leg;
  }

  clear(): void {
    this.#legs.clear();
  }
}
