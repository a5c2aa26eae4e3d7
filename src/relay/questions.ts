import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import { PING } from '../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { errorFrame, resultFrame } from '../wire/write-message.ts';
import type { Call } from './call.ts';

/** Requests of a server that one client may have open. A client with more does not answer them. */
export const MAX_OPEN_QUESTIONS = 1024;
/**
 * Characters of the id of a server's request, which is kept until the answer comes. No server needs more to tell its
 * requests apart.
 */
export const MAX_QUESTION_ID_LENGTH = 256;

/** Returns why the client cannot be asked under this id, or undefined if it can. */
export function refusalOfId(id: JsonRpcId): BridgeError | undefined {
  if (typeof id === 'number' || id.length <= MAX_QUESTION_ID_LENGTH) return undefined;
  const message = `The id of this request has ${id.length} characters; a client is asked under ids of ${MAX_QUESTION_ID_LENGTH} at most.`;
  return new BridgeError('ERR_WIRE_MESSAGE', message);
}

/** Requests of a server that its client has not answered. Each belongs to a call, if the call is known. */
export class Questions {
  readonly #clock: Clock;
  readonly #open = new Map<JsonRpcId, Call | undefined>();
  #refused: BridgeError | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when the client answers nothing anymore. Later questions get this reason. */
  refuse(reason: BridgeError): void {
    this.#refused = reason;
  }

  /** Returns the answer that the server gets without asking the client. Undefined if the client can be asked. */
  answerAtOnce({ id, method }: Frame): Frame | undefined {
    // A ping asks if the client is still there. A client that only reads its answers is.
    if (this.#refused !== undefined && method === PING) return resultFrame(id as JsonRpcId, {}); // a request has one
    const refusal = this.#refusalOf(id as JsonRpcId);
    return refusal && errorFrame(id, rpcErrorOf(refusal));
  }

  #refusalOf(id: JsonRpcId): BridgeError | undefined {
    if (this.#refused !== undefined) return this.#refused;
    return this.#open.size >= MAX_OPEN_QUESTIONS ? TOO_MANY : refusalOfId(id);
  }

  open(id: JsonRpcId, call: Call | undefined): void {
    // A server that uses an id twice gets one answer. The call of the earlier question must not wait for ever.
    this.close(id);
    this.#open.set(id, call);
    if (call !== undefined) call.openQuestions += 1;
  }

  /** Closes the question that the client has answered. Returns false if no question is open under this id. */
  answered(id: JsonRpcId | undefined): boolean {
    if (id === undefined || !this.#open.has(id)) return false;
    this.close(id);
    return true;
  }

  /** Closes a question and returns its call, whose time of silence starts again. */
  close(id: JsonRpcId): Call | undefined {
    const call = this.#open.get(id);
    this.#open.delete(id);
    if (call !== undefined) {
      call.openQuestions -= 1;
      call.lastActiveMs = this.#clock.now();
    }
    return call;
  }

  /** Forgets the questions of a call whose client answers them on another bridge. */
  forget(call: Call): void {
    for (const [id, asker] of this.#open) if (asker === call) this.#open.delete(id);
  }

  /** Closes all questions and returns their ids. */
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
