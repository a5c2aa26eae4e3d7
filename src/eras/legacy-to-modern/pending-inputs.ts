import type { Frame, JsonRpcId } from '../../wire/frame.ts';

/** A question that was sent to the client and is not answered. */
export interface PendingInput {
  readonly id: number;
  readonly method: string;
  readonly owner: PendingInputOwner;
}

/** The round that a question belongs to. */
export interface PendingInputOwner {
  /** Called with the client's answer, a result or an error. The question is not pending anymore. */
  answered(input: PendingInput, answer: Frame): void;
  /** Called when the client has reported progress on one of its questions. */
  progressed(): void;
}

/** The unanswered questions to one client, by their ids. */
export class PendingInputs {
  readonly #inputs = new Map<JsonRpcId, PendingInput>();
  #lastId = 0;

  open(method: string, owner: PendingInputOwner): PendingInput {
    this.#lastId += 1;
    const input: PendingInput = { id: this.#lastId, method, owner };
    this.#inputs.set(input.id, input);
    return input;
  }

  /** Returns the question with this id, which is also its progress token. */
  get(id: JsonRpcId | undefined): PendingInput | undefined {
    return id === undefined ? undefined : this.#inputs.get(id);
  }

  /** Removes and returns the question that an answer with this id ends. */
  take(id: JsonRpcId | undefined): PendingInput | undefined {
    const input = this.get(id);
    if (input !== undefined) this.#inputs.delete(input.id);
    return input;
  }

  clear(): void {
    this.#inputs.clear();
  }
}
