import type { Clock } from '../../../deps.ts';
import { INTERNAL_ERROR } from '../../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import { type Frame, type JsonRpcId, withPayload } from '../../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';

/** Servers ask right after the handshake, which was made for a call that follows. */
export const ROOTS_HOLD_MS = 10_000;
/** Servers ask again before they use the answer, within the call it was given for. */
export const ROOTS_MEMORY_MS = 60_000;
/** All these questions are the same: a server that needs more answers at once is not waiting for any of them. */
export const MAX_HELD_ROOTS = 64;
/** Limits the bytes of all held questions, which have no content. */
export const MAX_HELD_ROOTS_BYTES = 1024 * 1024;

/** A `roots/list` that came while no call was open which the client could be asked in. */
export interface RootsQuestion {
  readonly question: Frame;
  /** `roots` is the JSON text of the result. Only the first of the two counts, and none once the server is gone. */
  answer(result: Buffer): void;
  refuse(error: RpcError): void;
  /** Set by who asks the client: the server does not want to know it anymore. */
  onWithdrawn: () => void;
}

interface Held extends RootsQuestion {
  /** The server may still be answered. */
  isOpen: boolean;
  cancel: () => void;
}

const NONE: readonly RootsQuestion[] = [];

/** Keeps such questions for the next call that can ask the client, and the client's answer for the next question. */
export class RootsQuestions {
  readonly #clock: Clock;
  readonly #waiting = new Set<Held>();
  /** Waiting ones and those that a call has taken. */
  readonly #open = new Map<JsonRpcId, Held>();
  #bytes = 0;
  /** No call is over since the handshake: the server asks because of that, and not of a call it was late for. */
  #isFresh = true;
  #remembered: { readonly result: Buffer; readonly untilMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(question: Frame, reply: (answer: Frame) => void): void {
    const { id } = question;
    if (id === undefined) return;
    if (this.#remembered !== undefined && this.#clock.now() < this.#remembered.untilMs) {
      return reply(resultOf(this.#remembered.result));
    }
    if (!this.#isFresh) return reply(errorFrame(0, NO_CALL));
    // A server that uses an id twice gets one answer.
    this.withdrawn(id);
    const bytes = this.#bytes + question.bytes.length;
    if (this.#open.size >= MAX_HELD_ROOTS || bytes > MAX_HELD_ROOTS_BYTES) return reply(errorFrame(0, TOO_MANY));
    this.#bytes = bytes;
    const held: Held = {
      question,
      isOpen: true,
      cancel: this.#clock.after(ROOTS_HOLD_MS, () => held.refuse(NOBODY_ASKED)),
      answer: (result) => {
        this.#remember(result);
        if (this.#end(held)) reply(resultOf(result));
      },
      refuse: (error) => {
        if (this.#end(held)) reply(errorFrame(0, error));
      },
      onWithdrawn: () => {},
    };
    this.#waiting.add(held);
    this.#open.set(id, held);
  }

  /** Roots that are too large to be kept are asked for again. */
  #remember(result: Buffer): void {
    const untilMs = this.#clock.now() + ROOTS_MEMORY_MS;
    const isKept = result.length <= MAX_HELD_ROOTS_BYTES;
    this.#remembered = isKept ? { result: Buffer.from(result), untilMs } : undefined;
  }

  /** Takes the questions that wait. The caller has to answer or refuse each. */
  takeWaiting(): readonly RootsQuestion[] {
    if (this.#waiting.size === 0) return NONE;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const { cancel } of waiting) cancel();
    return waiting;
  }

  /** The server has been through a handshake, in which the client promised to tell its roots. */
  served(): void {
    this.#isFresh = true;
  }

  /** A call in which its client could be asked is over: the next one may be of a client with other roots. */
  callOver(): void {
    this.#isFresh = false;
    this.#remembered = undefined;
  }

  withdrawn(id: JsonRpcId): void {
    const held = this.#open.get(id);
    if (held !== undefined && this.#end(held)) held.onWithdrawn();
  }

  /** The server that asked is gone. */
  lost(): void {
    for (const id of [...this.#open.keys()]) this.withdrawn(id);
    this.#remembered = undefined;
  }

  /** The session ends; a server that still waits for an answer would wait for that before it ends itself. */
  close(): void {
    for (const held of [...this.#open.values()]) {
      held.refuse(SESSION_ENDS);
      held.onWithdrawn();
    }
  }

  #end(held: Held): boolean {
    if (!held.isOpen) return false;
    held.isOpen = false;
    this.#bytes -= held.question.bytes.length;
    held.cancel();
    this.#waiting.delete(held);
    if (held.question.id !== undefined) this.#open.delete(held.question.id);
    return true;
  }
}

function resultOf(result: Buffer): Frame {
  return withPayload(resultFrame(0, null), result);
}

const TOO_MANY: RpcError = {
  code: INTERNAL_ERROR,
  message: `requests for the roots of the client are waiting, as many as may (${MAX_HELD_ROOTS}, ${MAX_HELD_ROOTS_BYTES} bytes)`,
};

const NO_CALL: RpcError = { code: INTERNAL_ERROR, message: 'no call of the client is open that asks for its roots' };

const SESSION_ENDS: RpcError = { code: INTERNAL_ERROR, message: 'the session ends' };

const NOBODY_ASKED: RpcError = {
  code: INTERNAL_ERROR,
  message: 'no call of the client came in time that it could have been asked in',
};
