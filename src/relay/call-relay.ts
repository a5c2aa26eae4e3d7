import type { Logger } from 'pino';
import type { ListNode } from '../collections/short-lived-values.ts';
import { assertNever, BridgeError } from '../errors.ts';
import { ModernQuestions } from '../mcp/classify/modern-questions.ts';
import { LISTEN } from '../mcp/vocabulary/methods.ts';
import type { Frame } from '../wire/frame.ts';
import type { Exchange, Lane } from './exchange.ts';
import { type CallTimes, type ExchangeOwner, type Exchanges, withdrawal } from './exchanges.ts';
import { modernIntroductionOf, type ObservedClient, type Transport } from './observer.ts';
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
  readonly exchanges: Exchanges;
  /** Called once. */
  ended(call: CallRelay): void;
}

/** Whose call it is, and how it came in. */
export interface CallOrigin {
  readonly principal: string;
  readonly transport: Transport;
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
export class CallRelay implements ServerListener, CallListener, ExchangeOwner {
  readonly principal: string;
  readonly #transport: Transport;
  /** Its node in the list of open calls. */
  node: ListNode<CallRelay> | undefined;
  readonly #host: CallRelayHost;
  #questions: ModernQuestions | undefined = undefined;
  #state: CallState = DIALLING;

  constructor(host: CallRelayHost, { principal, transport }: CallOrigin) {
    this.#host = host;
    this.principal = principal;
    this.#transport = transport;
  }

  /** Called once: the request goes to the server. */
  start(request: Frame, peer: CallPeer, link: UpstreamLink): void {
    const { exchanges } = this.#host;
    const exchange = exchanges.create(request, peer);
    this.#state = { kind: 'open', exchange, peer, link };
    const sent = exchanges.open(this, exchange, request);
    // A link may answer within `send`.
    if (!link.send(sent, exchange) && exchange.state.kind === 'open') peer.pause();
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
    if (this.#state.kind !== 'open') return;
    const call = this.#state;
    this.#host.exchanges.cancel(this, call.exchange);
    this.#withdraw(call, 'the client left', CLIENT_LEFT);
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
        this.#host.exchanges.heard(exchange);
        exchange.sentBytes += frame.bytes.length;
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
    this.#answer(call, this.#host.exchanges.answer(this, exchange, frame), ANSWERED);
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
    const call = this.#state;
    const timedOut = this.#host.exchanges.timeOut(this, call.exchange, nowMs, times);
    if (timedOut === undefined) return;
    this.#withdraw(call, 'timed out', timedOut.error);
    call.peer.send(timedOut.answer);
  }

  /** Answers with the reason, and lets the link go. */
  close(reason: BridgeError): void {
    if (this.#state.kind !== 'open') return;
    const call = this.#state;
    if (this.isSubscription) this.#answer(call, this.#host.exchanges.endSubscription(this, call.exchange), reason);
    else this.#fail(call, reason);
  }

  #fail(call: OpenCall, error: BridgeError): void {
    this.#answer(call, this.#host.exchanges.fail(this, call.exchange, error), error);
  }

  /** Called when the exchange has ended. */
  #answer(call: OpenCall, frame: Frame, reason: BridgeError): void {
    call.peer.send(frame);
    this.#letGo(call, reason);
  }

  /** Called when the exchange has ended. */
  #withdraw(call: OpenCall, why: string, reason: BridgeError): void {
    call.link.send(withdrawal(call.exchange, why), call.exchange);
    this.#letGo(call, reason);
  }

  #letGo({ peer, link }: OpenCall, reason: BridgeError): void {
    link.close(reason);
    peer.resume();
  }

  // ---- for the exchanges

  ended(): void {
    this.#state = OVER;
    this.#host.ended(this);
  }

  describe(request: Frame): ObservedClient {
    const { principal } = this;
    return {
      transport: this.#transport,
      principal,
      server: this.#host.exchanges.server,
      ...modernIntroductionOf(request),
    };
  }
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The call was answered.');
const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client left before its call was answered.');
