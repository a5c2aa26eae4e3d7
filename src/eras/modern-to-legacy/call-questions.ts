import { findCancelledId } from '../../mcp/classify/correlators.ts';
import type { RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import type { InputQuestion } from './open-questions.ts';
import { serverQuestion } from './server-question.ts';

/** Asks the client what the server wants to know, and takes questions back. */
export interface ClientAsker {
  asked(question: InputQuestion): void;
  withdrawn(question: InputQuestion): void;
}

export interface CallQuestionsOptions {
  readonly park: ClientAsker;
  /** To the server. */
  readonly send: (frame: Frame) => void;
}

/** The requests of a server that belong to one call, by their id, until they are answered or withdrawn. */
export class CallQuestions {
  readonly #options: CallQuestionsOptions;
  readonly #byId = new Map<JsonRpcId, InputQuestion>();

  constructor(options: CallQuestionsOptions) {
    this.#options = options;
  }

  asked(frame: Frame, features: RevisionFeatures): void {
    const { id } = frame;
    if (id === undefined) return;
    const send = (message: Frame): void => {
      if (message.isResponse) this.#byId.delete(id);
      this.#options.send(message);
    };
    const question = serverQuestion(frame, { features, send });
    this.#byId.set(id, question);
    this.#options.park.asked(question);
  }

  withdrawn(cancelled: Frame): void {
    const id = findCancelledId(cancelled)?.value;
    const question = id === undefined ? undefined : this.#byId.get(id);
    if (id === undefined || question === undefined) return;
    this.#byId.delete(id);
    this.#options.park.withdrawn(question);
  }

  /** The call is over: nobody wants to know anything more. */
  clear(): void {
    this.#byId.clear();
  }
}
