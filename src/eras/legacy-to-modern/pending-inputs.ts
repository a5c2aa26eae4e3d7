import type { Frame, JsonRpcId } from '../../wire/frame.ts';

/** An input request that the client was sent and has not answered. */
export interface PendingInput {
  readonly id: number;
  readonly method: string;
  readonly owner: PendingInputOwner;
}

/** The round of input requests that an input belongs to. */
export interface PendingInputOwner {
  /** The client has answered, with a result or an error; the input is not pending any more. */
  answered(input: PendingInput, answer: Frame): void;
  /** The client has reported progress on one of its inputs. */
  progressed(): void;
}

/** The input requests that one client has not answered, by their ids. */
export class PendingInputs {
  readonly #inputs = new Map<JsonRpcId, PendingInput>();
  #lastId = 0;

  open(method: string, owner: PendingInputOwner): PendingInput {
    this.#lastId += 1;
    const input: PendingInput = { id: this.#lastId, method, owner };
    this.#inputs.set(input.id, input);
    return input;
  }

  /** The input with this id, which is its progress token, too. */
  get(id: JsonRpcId | undefined): PendingInput | undefined {
    return id === undefined ? undefined : this.#inputs.get(id);
  }

  /** Takes out the input that an answer with this id ends. */
  take(id: JsonRpcId | undefined): PendingInput | undefined {
    const input = this.get(id);
    if (input !== undefined) this.#inputs.delete(input.id);
    return input;
  }

  clear(): void {
    this.#inputs.clear();
  }
}
