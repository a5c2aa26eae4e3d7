import type { JsonRpcId } from '../wire/frame.ts';
import type { OnCallEnded } from './observer.ts';

/**
 * Where the messages of one exchange travel on the client's side: an HTTP response of one POST, or the client's only
 * pipe. Made by a downstream transport, opaque to the relay.
 */
export interface Lane {
  /** False once the client can no longer be reached on it: its connection closed and nothing can be resumed. */
  readonly isOpen: boolean;
  /**
   * Headers of the client's own HTTP request that the user lets pass to a remote server (`--forward-header`), names in
   * lower case. They go along with this exchange's request, and the latest ones with what belongs to no request.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
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
  onEnded: OnCallEnded | undefined = undefined;
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
