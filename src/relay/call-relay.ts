import type { Logger } from 'pino';
import type { ListNode } from '../collections/linked-list.ts';
import type { Clock } from '../deps.ts';
import { assertNever, BridgeError } from '../errors.ts';
import { findProgressToken } from '../mcp/classify/correlators.ts';
import { ModernQuestions } from '../mcp/classify/modern-questions.ts';
import { CANCELLED, LISTEN } from '../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { withId } from '../wire/splice.ts';
import { errorFrame, notificationFrame } from '../wire/write-message.ts';
import { type CallTimes, endOfSubscription, overdue } from './call-endings.ts';
import { type CancelledBy, Exchange, type Lane } from './exchange.ts';
import type { ServerFault, ServerListener, UpstreamLink } from './ports.ts';

/** The client of one call as its relay sees it. Implemented by downstream/streamable-stateless/. */
export interface CallPeer extends Lane {
  /** Sends to the client; a response is the last message. False: full, `clientDrained` follows. */
  send(frame: Frame): boolean;
  /** The server has not taken the request yet. Followed by one `resume`, at the latest when the call is over. */
  pause(): void;
  resume(): void;
}

/** What the client's side tells the relay of a call. */
export interface CallListener {
  clientDrained(): void;
  /** The client is gone: it wants no answer any more. */
  clientLeft(): void;
}

/** What a call needs of those who keep it. */
export interface CallRelayHost {
  readonly log: Logger;
  readonly clock: Clock;
  /** Called once. */
  ended(call: CallRelay): void;
}

/**
 * - `dialling`: there is no link yet, and nobody says anything.
 * - `open`: the request is with the server.
 * - `over`: answered or withdrawn; the link was let go.
 */
type CallState =
  | { readonly kind: 'dialling' }
  | { readonly kind: 'open'; readonly exchange: Exchange; readonly peer: CallPeer; readonly link: UpstreamLink }
  | { readonly kind: 'over' };

type OpenCall = Extract<CallState, { kind: 'open' }>;

const DIALLING: CallState = { kind: 'dialling' };
const OVER: CallState = { kind: 'over' };

/**
 * Joins one modern request of a client with a link of its own. All that is said on the link belongs to the request, so
 * nothing is looked up; the request is answered exactly once, or withdrawn. One is made for each request: it has no
 * timer, no table and no log of its own.
 */
export class CallRelay implements ServerListener, CallListener {
  readonly principal: string;
  readonly requestBytes: number;
  /** Its node in the list of open calls. */
  node: ListNode<CallRelay> | undefined;
  readonly #host: CallRelayHost;
  #questions: ModernQuestions | undefined = undefined;
  #state: CallState = DIALLING;

  constructor(host: CallRelayHost, principal: string, requestBytes: number) {
    this.#host = host;
    this.principal = principal;
    this.requestBytes = requestBytes;
  }

  /** Called once: the request goes to the server. */
  start(request: Frame, peer: CallPeer, link: UpstreamLink): void {
    const token = findProgressToken(request)?.value;
    const { id, method } = request;
    const exchange = new Exchange(id as JsonRpcId, method as string, peer, token, this.#host.clock.now());
    this.#state = { kind: 'open', exchange, peer, link };
    // A link may answer within `send`.
    if (!link.send(request, exchange) && exchange.state.kind === 'open') peer.pause();
  }

  /** It stays open until one side ends it, however long nothing is said. */
  get isSubscription(): boolean {
    return this.#state.kind === 'open' && this.#state.exchange.method === LISTEN;
  }

  // ---- from the client

  clientDrained(): void {
    if (this.#state.kind === 'open') this.#state.link.resume();
  }

  /** [spec 2026-07-28 transports/streamable-http#cancellation] A disconnect is the cancellation of the request. */
  clientLeft(): void {
    if (this.#state.kind === 'open') this.#withdraw(this.#state, 'client', CLIENT_LEFT);
  }

  // ---- from the server

  fromServer(frame: Frame, known?: Exchange): void {
    if (this.#state.kind !== 'open') return;
    const { exchange, peer, link } = this.#state;
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answered(this.#state, frame, known);
      case 'notification':
        exchange.lastActiveMs = this.#host.clock.now();
        if (!peer.send(frame)) link.pause();
        return;
      case 'request':
        // [spec 2026-07-28 transports/streamable-http#receiving-messages] must not be sent; so there is no answer.
        this.#questions ??= new ModernQuestions();
        return this.#questions.ignore(frame, this.#host.log);
      default:
        return assertNever(frame.kind);
    }
  }

  #answered(call: OpenCall, frame: Frame, known: Exchange | undefined): void {
    const { exchange } = call;
    if (known !== exchange && frame.id !== undefined && frame.id !== exchange.id) {
      return this.#host.log.debug({ id: frame.id }, 'server answered a request that is not open');
    }
    // Under its own id the client knows what it is told about.
    this.#answer(call, frame.id === undefined ? withId(frame, exchange.id) : frame, ANSWERED);
  }

  serverFault({ error, kind, id }: ServerFault): void {
    if (this.#state.kind !== 'open') return;
    this.#host.log.error({ code: error.code }, error.message);
    if (kind === 'request' || kind === 'notification') return;
    if (id === undefined || id === this.#state.exchange.id) this.#fail(this.#state, error);
  }

  serverDrained(): void {
    if (this.#state.kind === 'open') this.#state.peer.resume();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#state.kind === 'open') this.#fail(this.#state, reason);
  }

  // ---- time and end

  /** Fails the call if it has been silent, or open, for too long. */
  sweep(nowMs: number, times: CallTimes): void {
    if (this.#state.kind !== 'open') return;
    const { exchange, peer } = this.#state;
    const error = overdue(exchange, nowMs, times);
    if (error === undefined) return;
    this.#withdraw(this.#state, 'timeout', error);
    peer.send(errorFrame(exchange.id, rpcErrorOf(error)));
  }

  /** Answers with the reason, and lets the link go. */
  close(reason: BridgeError): void {
    if (this.#state.kind !== 'open') return;
    if (this.isSubscription) this.#answer(this.#state, endOfSubscription(this.#state.exchange.id), reason);
    else this.#fail(this.#state, reason);
  }

  #fail(call: OpenCall, error: BridgeError): void {
    this.#answer(call, errorFrame(call.exchange.id, rpcErrorOf(error)), error);
  }

  #answer(call: OpenCall, frame: Frame, reason: BridgeError): void {
    call.exchange.settle();
    this.#state = OVER;
    call.peer.send(frame);
    this.#letGo(call, reason);
  }

  #withdraw(call: OpenCall, by: CancelledBy, reason: BridgeError): void {
    const { exchange, link } = call;
    exchange.cancel(by);
    this.#state = OVER;
    const why = by === 'timeout' ? 'timed out' : 'the client left';
    link.send(notificationFrame(CANCELLED, { requestId: exchange.id, reason: why }), exchange);
    this.#letGo(call, reason);
  }

  #letGo({ peer, link }: OpenCall, reason: BridgeError): void {
    link.close(reason);
    peer.resume();
    this.#host.ended(this);
  }
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The call was answered.');
const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client left before its call was answered.');
