import { LinkedList, ListMember } from '../collections/short-lived-values.ts';
import type { Deps } from '../deps.ts';
import { assertNever, BridgeError, toBridgeError } from '../errors.ts';
import { readRequestState } from '../mcp/classify/input-responses.ts';
import { ModernQuestions } from '../mcp/classify/modern-questions.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import { LISTEN } from '../mcp/vocabulary/methods.ts';
import type { Frame } from '../wire/frame.ts';
import { CallerLinks, type NotifyingCaller } from './caller-links.ts';
import { modernIntroductionOf } from './client-presence.ts';
import type { Exchange, Lane } from './exchange.ts';
import {
  type CallTimes,
  drained,
  type ExchangeOwner,
  type Exchanges,
  shortestOf,
  sweepPeriodOf,
  withdrawal,
} from './exchanges.ts';
import type { ClientIntroduction, ObservedClient, Transport } from './observer.ts';
import type { CallerDialers, CallerEnvironment, LinkOwner, ServerFault, UpstreamLink } from './ports.ts';
import type { WiderLimits } from './shared-state.ts';

export interface CallRegistryOptions extends CallTimes {
  /** Each call gets a link of its own, for its context. */
  readonly dialers: CallerDialers;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
  /** Shared with the sessions. Subscriptions count, because they are calls that stay open. */
  readonly exchanges: Exchanges;
  /** Calls that one caller may have open, so that others get some too. Default: as many as all callers together. */
  readonly maxSessionInFlight?: number;
  /** Limits on the total of several bridges. Undefined if this bridge is the only one. */
  readonly widerLimits?: Pick<WiderLimits, 'refusalFor'> | undefined;
}

/** A modern request that has been checked. */
export interface CallRequest extends CallOrigin {
  readonly frame: Frame;
  readonly metadata: RequestMetadata;
  /** Variables that describe the caller to the server's process. */
  readonly environment: CallerEnvironment | undefined;
  /** Headers of the caller's HTTP request that `--forward-header` names; see `Lane`. */
  readonly headers: Lane['headers'];
}

/** All open modern calls of the bridge, which are requests that belong to no session. */
export class CallRegistry {
  readonly #options: CallRegistryOptions;
  readonly exchanges: Exchanges;
  readonly #maxSessionInFlight: number;
  readonly #calls = new LinkedList<CallRelay>();
  #size = 0;
  readonly #callerLinks: CallerLinks;
  readonly #perPrincipal = new Map<string, number>();
  #stopSweep: (() => void) | undefined;
  #isDraining = false;

  constructor(options: CallRegistryOptions) {
    this.#options = options;
    this.#callerLinks = new CallerLinks(options.dialers, options.deps);
    this.exchanges = options.exchanges;
    this.#maxSessionInFlight = options.maxSessionInFlight ?? options.exchanges.maxOpen;
  }

  get log(): Deps['log'] {
    return this.#options.deps.log;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Starts a call. Throws a BridgeError if a limit is reached or the server cannot be reached; then there is no peer.
   */
  open(request: CallRequest, createPeer: (listener: CallListener) => CallPeer): void {
    const call = new CallRelay(this, request);
    let link: UpstreamLink | undefined;
    let peer: CallPeer;
    try {
      link = this.#dial(request, call);
      peer = createPeer(call);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      link?.close(error);
      if (link !== undefined) this.#linkEnded(request);
      this.exchanges.refuse(call, request.frame, error);
      throw thrown;
    }
    this.#calls.add(call);
    this.#size += 1;
    this.#count(call.principal, 1);
    this.#startSweep();
    call.start(request.frame, peer, link);
  }

  #dial({ frame, principal, metadata, environment, headers }: CallRequest, call: CallRelay): UpstreamLink {
    this.#checkLimits(principal, frame);
    return this.#options.dialers.forCaller(environment).dialCalls(call, { principal, metadata, headers });
  }

  /** Forwards a notification that belongs to no call. A notification has no answer, so failures are only logged. */
  notify(notification: Frame, caller: NotifyingCaller): void {
    if (this.#isDraining || this.exchanges.answerToHidden(notification) !== undefined) return;
    this.#callerLinks.send(notification, caller);
  }

  #checkLimits(principal: string, frame: Frame): void {
    // A call that comes back with answers is not new, so it is accepted until the end.
    if (this.#isDraining && readRequestState(frame) === undefined) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and takes no new calls.', RETRY);
    }
    const refusal = this.exchanges.refusalOf(frame);
    if (refusal !== undefined) throw refusal;
    if (this.countOf(principal) >= this.#maxSessionInFlight) {
      const message = `${this.#maxSessionInFlight} calls are open for this caller, the most allowed; wait for answers, or close subscriptions, before sending more.`;
      throw new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    const wider = this.#options.widerLimits?.refusalFor(principal);
    if (wider !== undefined) throw wider.error;
  }

  /** Returns the number of open calls of a caller. */
  countOf(principal: string): number {
    return this.#perPrincipal.get(principal) ?? 0;
  }

  /** Called once for each call that was opened. */
  ended(call: CallRelay): void {
    call.unlink();
    this.#size -= 1;
    this.#count(call.principal, -1);
    this.#linkEnded(call);
  }

  #linkEnded({ environment }: Pick<CallRequest, 'environment'>): void {
    if (environment !== undefined) this.#options.dialers.linkEnded(environment);
  }

  #count(principal: string, change: 1 | -1): void {
    const count = this.countOf(principal) + change;
    if (count === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, count);
  }

  #startSweep(): void {
    if (this.#stopSweep !== undefined) return;
    const periodMs = sweepPeriodOf(shortestOf(this.#options));
    const { clock } = this.exchanges;
    if (Number.isFinite(periodMs)) this.#stopSweep = clock.every(periodMs, () => this.#sweep(clock.now()));
  }

  #sweep(nowMs: number): void {
    for (const call of this.#calls.toArray()) call.sweep(nowMs, this.#options);
  }

  /**
   * Accepts no new calls. Resolves when all calls but subscriptions are answered and `isAwaited` returns false, or
   * after `graceMs`. `isAwaited` returns true while parked calls may continue.
   */
  drain(graceMs: number, isAwaited: () => boolean = () => false): Promise<void> {
    this.#isDraining = true;
    return drained(this.exchanges.clock, graceMs, () => this.#hasOpenCalls() || isAwaited());
  }

  #hasOpenCalls(): boolean {
    for (const call of this.#calls.toArray()) if (!call.isSubscription) return true;
    return false;
  }

  /**
   * Ends everything: subscriptions get their regular answer, and all other calls fail with the reason. May be called
   * twice.
   */
  close(reason: BridgeError): void {
    this.#isDraining = true;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    for (const call of this.#calls.toArray()) call.close(reason);
    this.#callerLinks.close(reason);
  }
}

const RETRY = { retryAfterMs: 1000 };

/** The client of one call as its relay sees it. Implemented in downstream/streamable-stateless/. */
export interface CallPeer extends Lane {
  /**
   * Sends a message to the client; a response is the last one. Returns false if the client is full; `clientDrained`
   * follows.
   */
  send(frame: Frame): boolean;
  /**
   * Called if the server has not taken the request yet. Exactly one `resume` follows, at the latest when the call is
   * over.
   */
  pause(): void;
  resume(): void;
}

/** Called by a downstream transport with everything that happens on the client's side of a call. */
export interface CallListener {
  clientDrained(): void;
  /** Called when the client has disconnected and expects no answer. */
  clientLeft(): void;
}

/** The caller of a call, and the transport that brought it. */
export interface CallOrigin {
  readonly principal: string;
  readonly transport: Transport;
  /** Description of a legacy client for observers. Undefined for a modern client, whose request describes it. */
  readonly introduction?: ClientIntroduction | undefined;
}

/**
 * - `dialling`: the call has no link yet, and no message arrives.
 * - `open`: the server has the request.
 * - `over`: the call was answered or withdrawn, and its link is closed.
 */
type CallState =
  | { readonly kind: 'dialling' }
  | { readonly kind: 'open'; readonly exchange: Exchange; readonly peer: CallPeer; readonly link: UpstreamLink }
  | { readonly kind: 'over' };

type OpenCall = Extract<CallState, { kind: 'open' }>;

const DIALLING: CallState = { kind: 'dialling' };
const OVER: CallState = { kind: 'over' };

/**
 * Joins one modern request of a client with a link of its own. Every message on the link belongs to the request, so
 * nothing has to be looked up. The request is answered exactly once, or withdrawn. Each request has a relay, so a relay
 * has no timer, no table and no log of its own.
 */
export class CallRelay extends ListMember implements LinkOwner, CallListener, ExchangeOwner {
  readonly principal: string;
  readonly environment: CallerEnvironment | undefined;
  readonly #transport: Transport;
  readonly #introduction: ClientIntroduction | undefined;
  readonly #registry: CallRegistry;
  #questions: ModernQuestions | undefined = undefined;
  #state: CallState = DIALLING;

  constructor(registry: CallRegistry, { principal, environment, transport, introduction }: CallRequest) {
    super();
    this.#registry = registry;
    this.principal = principal;
    this.environment = environment;
    this.#transport = transport;
    this.#introduction = introduction;
  }

  /** Sends the request to the server. Called once. */
  start(request: Frame, peer: CallPeer, link: UpstreamLink): void {
    const { exchanges } = this.#registry;
    const exchange = exchanges.create(request, peer);
    this.#state = { kind: 'open', exchange, peer, link };
    const sent = exchanges.open(this, exchange, request);
    const refused = exchanges.answerToHidden(sent);
    if (refused !== undefined) return this.#answered(this.#state, refused, exchange);
    // A link may answer within `send`.
    if (!link.send(sent, exchange) && exchange.state.kind === 'open') peer.pause();
  }

  /** True for a subscription, which stays open until one side ends it, even in long silence. */
  get isSubscription(): boolean {
    return this.#state.kind === 'open' && this.#state.exchange.method === LISTEN;
  }

  // ---- from the client

  clientDrained(): void {
    if (this.#state.kind === 'open') this.#state.link.resume();
  }

  /** A disconnect is the cancellation of the request. [spec 2026-07-28 transports/streamable-http#cancellation] */
  clientLeft(): void {
    if (this.#state.kind !== 'open') return;
    const call = this.#state;
    this.#registry.exchanges.cancel(this, call.exchange);
    this.#withdraw(call, 'the client left', CLIENT_LEFT);
  }

  // ---- from the server

  serverFound(link: UpstreamLink): void {
    if (this.#state.kind === 'open') this.#state = { ...this.#state, link };
  }

  fromServer(frame: Frame, known?: Exchange): void {
    if (this.#state.kind !== 'open') return;
    const { exchange, peer, link } = this.#state;
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answered(this.#state, frame, known);
      case 'notification':
        this.#registry.exchanges.heard(exchange);
        exchange.sentBytes += frame.bytes.length;
        if (!peer.send(frame)) link.pause();
        return;
      case 'request':
        // A modern server must not send requests, so it gets no answer.
        // [spec 2026-07-28 transports/streamable-http#receiving-messages]
        this.#questions ??= new ModernQuestions();
        return this.#questions.ignore(frame, this.#registry.log);
      default:
        return assertNever(frame.kind);
    }
  }

  #answered(call: OpenCall, frame: Frame, known: Exchange | undefined): void {
    const { exchange } = call;
    if (known !== exchange && frame.id !== undefined && frame.id !== exchange.id) {
      return this.#registry.log.debug({ id: frame.id }, 'server answered a request that is not open');
    }
    this.#answer(call, this.#registry.exchanges.answer(this, exchange, frame), ANSWERED);
  }

  serverFault({ error, kind, id }: ServerFault): void {
    if (this.#state.kind !== 'open') return;
    this.#registry.log.error({ code: error.code }, error.message);
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
    const timedOut = this.#registry.exchanges.timeOut(this, call.exchange, nowMs, times);
    if (timedOut === undefined) return;
    this.#withdraw(call, 'timed out', timedOut.error);
    call.peer.send(timedOut.answer);
  }

  /** Answers with the reason, and closes the link. */
  close(reason: BridgeError): void {
    if (this.#state.kind !== 'open') return;
    const call = this.#state;
    if (this.isSubscription) this.#answer(call, this.#registry.exchanges.endSubscription(this, call.exchange), reason);
    else this.#fail(call, reason);
  }

  #fail(call: OpenCall, error: BridgeError): void {
    this.#answer(call, this.#registry.exchanges.fail(this, call.exchange, error), error);
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
    this.#registry.ended(this);
  }

  describe(request: Frame): ObservedClient {
    const { principal } = this;
    return {
      transport: this.#transport,
      principal,
      server: this.#registry.exchanges.server,
      ...(this.#introduction ?? modernIntroductionOf(request)),
    };
  }
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The call was answered.');
const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client left before its call was answered.');
