import { CellMap } from '../collections/short-lived-values.ts';
import { BridgeError } from '../errors.ts';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';
import { INITIALIZE, isInteractive } from '../mcp/vocabulary/methods.ts';
import { idOfOtherType, type JsonRpcId } from '../wire/frame.ts';
import type { EndCall } from './observer.ts';

/**
 * Where the messages of one exchange travel on the client's side: an HTTP response of one POST, or the client's only
 * pipe. Made by a downstream transport, opaque to the relay.
 */
export interface Lane {
  /** False once the client can no longer be reached on it: its connection closed and nothing can be resumed. */
  readonly isOpen: boolean;
  /** When the client's last connection closed that it could be asked on; undefined: one is open. */
  readonly lostAtMs?: number | undefined;
  /**
   * Headers of the client's own HTTP request that the user lets pass to a remote server (`--forward-header`), names in
   * lower case. They go along with this exchange's request, and the latest ones with what belongs to no request.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What the client's own HTTP request says of its trace, if there is such a request and it says anything. */
  readonly traceHeaders?: TraceContext | undefined;
}

/** What withdrew a request. */
export type CancelledBy = 'client' | 'timeout';

/**
 * - `open`: forwarded, not answered.
 * - `cancelled`: withdrawn; a late answer is dropped.
 * - `settled`: answered.
 */
export type ExchangeState =
  | { readonly kind: 'open' }
  | { readonly kind: 'cancelled'; readonly by: CancelledBy }
  | { readonly kind: 'settled' };

const OPEN: ExchangeState = { kind: 'open' };
const SETTLED: ExchangeState = { kind: 'settled' };

/**
 * One request of the client, from its arrival to its answer, and the lane its messages travel on. On a link of its
 * own the id goes to the server as it came; a shared link gives it another one (`upstreamId`) and restores it.
 */
export class Exchange {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly lane: Lane;
  /** The client's progress token, if it asked for progress. */
  readonly progressToken: JsonRpcId | undefined;
  /** The id this request has on a shared link; 0 while it has none. */
  upstreamId = 0;
  /** Requests of the server that wait for this client because of this exchange: a person may be thinking. */
  openQuestions = 0;
  /** The size of its request, where a client sent it. */
  requestBytes = 0;
  /** What was sent to the client for it before its answer. */
  sentBytes = 0;
  /** Set by `Exchanges` while an observer waits for the end. */
  onEnded: EndCall | undefined = undefined;
  /** When it arrived, by the clock of the bridge. */
  readonly openedAtMs: number;
  /** When something last happened. */
  lastActiveMs: number;
  #state: ExchangeState = OPEN;

  constructor(id: JsonRpcId, method: string, lane: Lane, progressToken: JsonRpcId | undefined, nowMs: number) {
    this.id = id;
    this.method = method;
    this.lane = lane;
    this.progressToken = progressToken;
    this.openedAtMs = nowMs;
    this.lastActiveMs = nowMs;
  }

  get state(): ExchangeState {
    return this.#state;
  }

  settle(): void {
    this.#leaveOpen();
    this.#state = SETTLED;
  }

  cancel(by: CancelledBy): void {
    this.#leaveOpen();
    this.#state = { kind: 'cancelled', by };
  }

  #leaveOpen(): void {
    if (this.#state.kind !== 'open') throw new Error(`exchange is ${this.#state.kind} already`);
  }
}

/** Calls one client may have open at once; a client that exceeds it is not waiting for answers. */
export const MAX_OPEN_EXCHANGES = 1024;
/** Some links keep an `initialize` as long as its session. Clients say who they are in some hundred bytes. */
export const MAX_INITIALIZE_BYTES = 1024 * 1024;

export const INITIALIZE_TOO_LARGE = new BridgeError(
  'ERR_WIRE_FRAME_TOO_LARGE',
  `An initialize may have at most ${MAX_INITIALIZE_BYTES} bytes, because it is kept with its session; leave out what the server does not need.`,
);

/** The open exchanges of one client: found by id, by progress token, or by what a server's message most likely means. */
export class ExchangeTable {
  readonly #maxOpen: number;
  /** The exchanges in the order they were opened. */
  readonly #byId = new CellMap<JsonRpcId, Exchange>();
  readonly #byToken = new CellMap<JsonRpcId, Exchange>();

  constructor(maxOpen = MAX_OPEN_EXCHANGES) {
    this.#maxOpen = maxOpen;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#byId.has(id);
  }

  /** Why this one cannot be added; undefined: it can. */
  refusalOf({ id, method, requestBytes }: Exchange): BridgeError | undefined {
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

  add(exchange: Exchange): void {
    this.#byId.set(exchange.id, exchange);
    if (exchange.progressToken !== undefined) this.#byToken.set(exchange.progressToken, exchange);
  }

  find(id: JsonRpcId): Exchange | undefined {
    return this.#byId.get(id);
  }

  /** By the very token, or else by one of the same value: the clients of the official SDKs know tokens by that. */
  findByToken(token: JsonRpcId): Exchange | undefined {
    const exact = this.#byToken.get(token);
    if (exact !== undefined || this.#byToken.size === 0) return exact;
    const other = idOfOtherType(token);
    return other === undefined ? undefined : this.#byToken.get(other);
  }

  remove(exchange: Exchange): void {
    this.#byId.delete(exchange.id);
    // A client that uses one token twice keeps the later call reachable.
    if (exchange.progressToken !== undefined && this.#byToken.get(exchange.progressToken) === exchange) {
      this.#byToken.delete(exchange.progressToken);
    }
  }

  /** The only open exchange, if there is exactly one. */
  sole(): Exchange | undefined {
    if (this.#byId.size !== 1) return undefined;
    for (const exchange of this.#byId.values()) return exchange;
    return undefined;
  }

  /**
   * The exchange that a request of the server most likely belongs to: stdio carries no such link. Interactive calls
   * first, of those the latest that is not already waiting for the client.
   */
  likelyAsker(): Exchange | undefined {
    let best: Exchange | undefined;
    let bestRank = -1;
    for (const exchange of this.#byId.values()) {
      const rank = (isInteractive(exchange.method) ? 2 : 0) + (exchange.openQuestions === 0 ? 1 : 0);
      if (rank >= bestRank) {
        best = exchange;
        bestRank = rank;
      }
    }
    return best;
  }

  /** A copy: callers remove while they walk. */
  all(): readonly Exchange[] {
    return [...this.#byId.values()];
  }
}
