import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import { PING } from '../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { errorFrame, resultFrame } from '../wire/write-message.ts';
import type { Exchange } from './exchange.ts';

/** Requests of a server one client may have open; more means that nobody answers them. */
export const MAX_OPEN_QUESTIONS = 1024;
/** Characters of the id of one: it is kept until the answer comes. No server needs more to tell them apart. */
export const MAX_QUESTION_ID_LENGTH = 256;

/** Why nobody is asked something under this id; undefined: it can be kept. */
export function refusalOfId(id: JsonRpcId): BridgeError | undefined {
  if (typeof id === 'number' || id.length <= MAX_QUESTION_ID_LENGTH) return undefined;
  const message = `The id of this request has ${id.length} characters; a client is asked under ids of ${MAX_QUESTION_ID_LENGTH} at most.`;
  return new BridgeError('ERR_WIRE_MESSAGE', message);
}

/** Requests of a server that its client has not answered, each with the call it was asked for, as far as known. */
export class Questions {
  readonly #clock: Clock;
  readonly #open = new Map<JsonRpcId, Exchange | undefined>();
  #refused: BridgeError | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The client answers nothing any more. */
  refuse(reason: BridgeError): void {
    this.#refused = reason;
  }

  /** The answer that the server gets without the client being asked; undefined: it can be. */
  answerAtOnce({ id, method }: Frame): Frame | undefined {
    // It is asked whether somebody is there, and somebody is: who reads the answers.
    if (this.#refused !== undefined && method === PING) return resultFrame(id as JsonRpcId, {}); // a request has one
    const refusal = this.#refusalOf(id as JsonRpcId);
    return refusal && errorFrame(id, rpcErrorOf(refusal));
  }

  #refusalOf(id: JsonRpcId): BridgeError | undefined {
    if (this.#refused !== undefined) return this.#refused;
    return this.#open.size >= MAX_OPEN_QUESTIONS ? TOO_MANY : refusalOfId(id);
  }

  open(id: JsonRpcId, exchange: Exchange | undefined): void {
    // A server that uses an id twice gets one answer; the call that waits for the other must not wait for ever.
    this.close(id);
    this.#open.set(id, exchange);
    if (exchange !== undefined) exchange.openQuestions += 1;
  }

  /** Closes what the client has answered. False: nothing is open under this id. */
  answered(id: JsonRpcId | undefined): boolean {
    if (id === undefined || !this.#open.has(id)) return false;
    this.close(id);
    return true;
  }

  /** Returns the call it was asked for. That call's time starts anew. */
  close(id: JsonRpcId): Exchange | undefined {
    const exchange = this.#open.get(id);
    this.#open.delete(id);
    if (exchange !== undefined) {
      exchange.openQuestions -= 1;
      exchange.lastActiveMs = this.#clock.now();
    }
    return exchange;
  }

  /** What was asked for this call somebody else takes the answers to. */
  forget(exchange: Exchange): void {
    for (const [id, asker] of this.#open) if (asker === exchange) this.#open.delete(id);
  }

  /** The ids of all that is open, which is closed. */
  takeAll(): readonly JsonRpcId[] {
    const ids = [...this.#open.keys()];
    for (const id of ids) this.close(id);
    return ids;
  }
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `The client has ${MAX_OPEN_QUESTIONS} unanswered requests of this server, the most allowed.`,
);
