import { CellMap, ListMember } from '../collections/short-lived-values.ts';
import { BridgeError } from '../errors.ts';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';
import { INITIALIZE, isInteractive } from '../mcp/vocabulary/methods.ts';
import { type Frame, idOfOtherType, type JsonRpcId } from '../wire/frame.ts';
import type { EndCall } from './observer.ts';

/**
 * The client's side of one call: the HTTP response of one POST, or the client's only pipe. Made by a downstream
 * transport, opaque to the relay.
 */
export interface Lane {
  /** False once the client can no longer be reached here: its connection has closed, and nothing can be resumed. */
  readonly isOpen: boolean;
  /**
   * Time at which the last connection closed on which this client could be asked something. Undefined while one is
   * open.
   */
  readonly lostAtMs?: number | undefined;
  /**
   * Headers of the client's HTTP request that `--forward-header` names, in lower case. The call's own request carries
   * them. A message that belongs to no request carries those of the client's latest request.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Trace context from the client's HTTP request, if there is such a request and it has one. */
  readonly traceHeaders?: TraceContext | undefined;
}

/** The cause of a withdrawal. */
export type CanceledBy = 'client' | 'timeout';

/**
 * - `open`: forwarded and not answered.
 * - `cancelled`: withdrawn. A late answer is dropped.
 * - `settled`: answered.
 */
export type CallState =
  | { readonly kind: 'open' }
  | { readonly kind: 'cancelled'; readonly by: CanceledBy }
  | { readonly kind: 'settled' };

const OPEN: CallState = { kind: 'open' };
const SETTLED: CallState = { kind: 'settled' };

/**
 * One request of a client, from its arrival to its answer, and the lane that carries its messages. A request that the
 * bridge makes of a server by itself is a call as well, whose client is the bridge. On an exclusive link the server gets
 * the client's own id. A shared link replaces it by `upstreamId` and restores it in the answer. A call can be a member of
 * one list, which its owner keeps.
 */
export class Call extends ListMember {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly lane: Lane;
  /** The client's progress token, if the client asked for progress. */
  readonly progressToken: JsonRpcId | undefined;
  /** The id of this request on a shared link. 0 while there is none. */
  upstreamId = 0;
  /** Number of unanswered requests of the server that belong to this call. A person may be thinking about them. */
  openQuestions = 0;
  /** Size of the request, if a client sent it. */
  requestBytes = 0;
  /** Bytes sent to the client for this call before its answer. */
  sentBytes = 0;
  /** Set by `Calls` while an observer waits for the end. */
  onEnded: EndCall | undefined = undefined;
  /** Time of arrival, by the clock of the bridge. */
  readonly openedAtMs: number;
  /** Time of the last message about this call. */
  lastActiveMs: number;
  #state: CallState = OPEN;

  constructor(id: JsonRpcId, method: string, lane: Lane, progressToken: JsonRpcId | undefined, nowMs: number) {
    super();
    this.id = id;
    this.method = method;
    this.lane = lane;
    this.progressToken = progressToken;
    this.openedAtMs = nowMs;
    this.lastActiveMs = nowMs;
  }

  get state(): CallState {
    return this.#state;
  }

  settle(): void {
    this.#leaveOpen();
    this.#state = SETTLED;
  }

  cancel(by: CanceledBy): void {
    this.#leaveOpen();
    this.#state = { kind: 'cancelled', by };
  }

  #leaveOpen(): void {
    if (this.#state.kind !== 'open') throw new Error(`call is ${this.#state.kind} already`);
  }
}

/** A message of a client, with the call that it begins or is about. */
export interface ClientMessage {
  readonly frame: Frame;
  readonly call: Call | undefined;
}

/** Calls that one client may have open at once. A client with more is not waiting for answers. */
export const MAX_OPEN_CALLS = 1024;
/**
 * An `initialize` usually has some hundred bytes. The limit exists because some links keep it as long as its session.
 */
export const MAX_INITIALIZE_BYTES = 1024 * 1024;

export const INITIALIZE_TOO_LARGE = new BridgeError(
  'ERR_WIRE_FRAME_TOO_LARGE',
  `An initialize may have at most ${MAX_INITIALIZE_BYTES} bytes, because it is kept with its session; leave out what the server does not need.`,
);

/**
 * The open calls of one client. They are found by id, by progress token, or by the most likely meaning of a server's
 * message.
 */
export class CallTable {
  readonly #maxOpen: number;
  readonly #byId = new CellMap<JsonRpcId, Call>();
  readonly #byToken = new CellMap<JsonRpcId, Call>();

  constructor(maxOpen = MAX_OPEN_CALLS) {
    this.#maxOpen = maxOpen;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#byId.has(id);
  }

  /** Returns why this call cannot be added. Undefined if it can. */
  refusalOf({ id, method, requestBytes }: Call): BridgeError | undefined {
    if (this.has(id)) {
      const message = `Request id ${JSON.stringify(id)} is already in use by a call that has not been answered; use a new id for each request.`;
      return new BridgeError('ERR_WIRE_MESSAGE', message);
    }
    if (this.size >= this.#maxOpen) {
      const message = `This session has ${this.#maxOpen} unanswered calls, the most allowed; wait for answers before sending more.`;
      return new BridgeError('ERR_SESSION_BUSY', message);
    }
    return method === INITIALIZE && requestBytes > MAX_INITIALIZE_BYTES ? INITIALIZE_TOO_LARGE : undefined;
  }

  add(call: Call): void {
    this.#byId.set(call.id, call);
    if (call.progressToken !== undefined) this.#byToken.set(call.progressToken, call);
  }

  find(id: JsonRpcId): Call | undefined {
    return this.#byId.get(id);
  }

  /**
   * Finds the call with this token, or otherwise with a token of the other JSON type and the same value, because
   * clients that use the official SDKs compare tokens by value.
   */
  findByToken(token: JsonRpcId): Call | undefined {
    const exact = this.#byToken.get(token);
    if (exact !== undefined || this.#byToken.size === 0) return exact;
    const other = idOfOtherType(token);
    return other === undefined ? undefined : this.#byToken.get(other);
  }

  remove(call: Call): void {
    this.#byId.delete(call.id);
    // A client that uses one token for two calls keeps the later call reachable.
    if (call.progressToken !== undefined && this.#byToken.get(call.progressToken) === call) {
      this.#byToken.delete(call.progressToken);
    }
  }

  /** Returns the only open call, if there is exactly one. */
  sole(): Call | undefined {
    if (this.#byId.size !== 1) return undefined;
    for (const call of this.#byId.values()) return call;
    return undefined;
  }

  /**
   * Returns the call that a request of the server most likely belongs to, where the transport does not tell, as on
   * stdio. Interactive calls come first, among these the calls with no open question, and among these the latest.
   */
  likelyAsker(): Call | undefined {
    let best: Call | undefined;
    let bestRank = -1;
    for (const call of this.#byId.values()) {
      const rank = (isInteractive(call.method) ? 2 : 0) + (call.openQuestions === 0 ? 1 : 0);
      if (rank >= bestRank) {
        best = call;
        bestRank = rank;
      }
    }
    return best;
  }

  /** Returns a copy, because callers remove calls while they iterate. */
  all(): readonly Call[] {
    return [...this.#byId.values()];
  }
}
