import type { Clock } from '../../../deps.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';

/** Calls that ask nothing are mostly over by then. */
export const UNCLEAR_HOLD_MS = 10_000;
/** A server that asks more at once than this, without saying in which call, waits in vain for most of it. */
export const MAX_UNCLEAR = 64;
export const MAX_UNCLEAR_BYTES = 1024 * 1024;

interface Held {
  readonly question: Frame;
  /** False: it is not clear yet. */
  readonly ask: () => boolean;
  readonly cancelTimer: () => void;
}

/**
 * Requests of a server that may belong to any of several open calls. A call that is answered was not waiting for an answer
 * itself, so they are kept until only one is left that can be meant.
 */
export class UnclearQuestions {
  readonly #clock: Clock;
  readonly #held = new Map<JsonRpcId, Held>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `ask` is tried whenever a call was answered; `refuse` is called when it was in vain. False: the limit is reached. */
  hold(question: Frame, ask: () => boolean, refuse: () => void): boolean {
    const { id, bytes } = question;
    if (id === undefined || this.#held.has(id) || this.#held.size >= MAX_UNCLEAR) return false;
    if (this.#bytes + bytes.length > MAX_UNCLEAR_BYTES) return false;
    const cancelTimer = this.#clock.after(UNCLEAR_HOLD_MS, () => {
      this.withdrawn(id);
      if (!ask()) refuse();
    });
    this.#held.set(id, { question, ask, cancelTimer });
    this.#bytes += bytes.length;
    return true;
  }

  /** A call is over. */
  look(): void {
    if (this.#held.size === 0) return;
    for (const [id, { ask }] of [...this.#held]) if (ask()) this.withdrawn(id);
  }

  /** False: none of this id is held. */
  withdrawn(id: JsonRpcId): boolean {
    const held = this.#held.get(id);
    if (held === undefined) return false;
    this.#held.delete(id);
    this.#bytes -= held.question.bytes.length;
    held.cancelTimer();
    return true;
  }

  /** The server is gone. */
  clear(): void {
    for (const id of [...this.#held.keys()]) this.withdrawn(id);
  }
}
