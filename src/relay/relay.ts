import type { Logger } from 'pino';
import { ByteQueue } from '../collections/bounded-collections.ts';
import { assertNever, BridgeError } from '../errors.ts';
import { findCancelledId, findProgressOf, rewriteProgress } from '../mcp/classify/correlators.ts';
import { ModernQuestions } from '../mcp/classify/modern-questions.ts';
import { CANCELLED, INITIALIZE, LIST_ROOTS, LISTEN, PROGRESS, SAMPLE, SET_LEVEL } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import { ERAS, type Era, type EraRules, type Revision, servedRevision } from '../mcp/vocabulary/revisions.ts';
import { failureToldBy, rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import { encodeId, type Frame, type JsonRpcId } from '../wire/frame.ts';
import { errorFrame } from '../wire/write-message.ts';
import { ClientPresence } from './client-presence.ts';
import { type Exchange, ExchangeTable, INITIALIZE_TOO_LARGE, type Lane } from './exchange.ts';
import { type CallTimes, type ExchangeOwner, type Exchanges, withdrawal } from './exchanges.ts';
import { createsTask, findAddressee, findCallOf, TaskTokens } from './notifications.ts';
import type { ClientOrigin, ObservedClient } from './observer.ts';
import type { ClientListener, DownstreamPeer, ServerFault, ServerListener, UpstreamLink } from './ports.ts';
import { Questions } from './questions.ts';

export interface RelayOptions extends CallTimes {
  readonly log: Logger;
  /** Shared with all other clients. */
  readonly exchanges: Exchanges;
  readonly origin: ClientOrigin;
  /** What both ends speak. A modern relay is `ready` from the start and its server asks nothing. */
  readonly era: Era;
  /** Calls this client may have open; default: MAX_OPEN_EXCHANGES. */
  readonly maxOpenExchanges?: number | undefined;
  /** The handshake succeeded. */
  readonly onReady: (revision: Revision) => void;
  /** Asked at the end: somebody else waits for the answer to this call, so its client is not told that there is none. */
  readonly goesOn?: ((exchange: Exchange) => boolean) | undefined;
  /** Either end is gone, or the handshake was refused; both ends have been closed. Called once. */
  readonly onEnd: (reason: BridgeError) => void;
}

/** Notifications that wait for the answer to `initialize`; what comes beyond is dropped. Servers have little to say by then. */
const EARLY_LIMITS = { maxItems: 100, maxBytes: 1024 * 1024 };

const REFUSED = new BridgeError('ERR_UPSTREAM_PROTOCOL', 'The server refused initialize; its error was passed on.');

/**
 * - `opening`: no successful `initialize` yet.
 * - `ready`: messages flow.
 * - `draining`: open calls may finish, new ones are refused.
 * - `closed`: both ends have been let go.
 */
type RelayState = 'opening' | 'ready' | 'draining' | 'closed';

/**
 * Joins one client with one server. Both speak the same era, so bytes pass as they are: the relay only decides where
 * each message goes and sees to it that every request is answered exactly once or withdrawn.
 */
export class Relay implements ClientListener, ServerListener, ExchangeOwner {
  readonly #options: RelayOptions;
  readonly #log: Logger;
  readonly #exchanges: Exchanges;
  readonly #open: ExchangeTable;
  readonly #rules: EraRules;
  readonly #questions: Questions;
  readonly #presence: ClientPresence;
  #state: RelayState;
  #peer: DownstreamPeer | undefined;
  #link: UpstreamLink | undefined;
  #endReason: BridgeError | undefined;
  #unasked: ModernQuestions | undefined;
  #taskTokens: TaskTokens | undefined;
  /** What the server said before it had answered `initialize`. */
  #early: ByteQueue<Frame> | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#rules = ERAS[options.era];
    this.#exchanges = options.exchanges;
    this.#open = new ExchangeTable(options.maxOpenExchanges);
    this.#questions = new Questions(options.exchanges.clock);
    this.#presence = new ClientPresence(options.exchanges, options.origin, options.era);
    this.#state = this.#rules.begins === 'initialize' ? 'opening' : 'ready';
  }

  /** Called once, before the first message. If one of the two is gone already, both are closed. */
  join(peer: DownstreamPeer, link: UpstreamLink): void {
    this.#peer = peer;
    this.#link = link;
    if (this.#endReason !== undefined) this.#closeEnds(this.#endReason);
  }

  /** The handshake was made elsewhere, and the client goes on here. Called after `join`. */
  resume(revision: Revision): void {
    if (this.#state !== 'opening') return;
    this.#state = 'ready';
    this.#presence.agreed(revision.id);
    this.#peer?.negotiated(revision);
    this.#options.onReady(revision);
    this.#tellEarly();
  }

  /** Another bridge has asked this of the client, in a call that goes on here. */
  wasAsked(id: JsonRpcId, { id: call }: Frame): void {
    const exchange = this.#open.find(call as JsonRpcId);
    if (exchange !== undefined) this.#questions.open(id, exchange);
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Open calls may finish, new ones are refused. */
  get isDraining(): boolean {
    return this.#state === 'draining';
  }

  get openExchanges(): number {
    return this.#open.size;
  }

  /** A request of the client with this id waits for its answer. */
  isOpen(id: JsonRpcId): boolean {
    return this.#open.has(id);
  }

  // ---- from the client

  fromClient(frame: Frame, lane: Lane): void {
    // A call that comes too late is told so.
    if (this.isClosed && frame.kind !== 'request') return;
    switch (frame.kind) {
      case 'request':
        return this.#requestFromClient(frame, lane);
      case 'notification':
        return this.#notificationFromClient(frame);
      case 'result':
      case 'error':
        return this.#answerFromClient(frame);
      default:
        return assertNever(frame.kind);
    }
  }

  #requestFromClient(frame: Frame, lane: Lane): void {
    const exchange = this.#exchanges.create(frame, lane);
    if (this.#presence.isAwaited) this.#presence.sees(frame);
    const refusal = this.#refusal(exchange, frame);
    if (refusal !== undefined) {
      this.#peer?.send(this.#exchanges.refuse(this, frame, refusal), exchange);
      if (refusal === INITIALIZE_TOO_LARGE) this.#handshakeFailed(refusal);
      return;
    }
    this.#open.add(exchange);
    const sent = this.#exchanges.open(this, exchange, frame);
    if (exchange.method === SET_LEVEL) this.#presence.used('logging');
    const refused = this.#exchanges.answerToHidden(sent);
    if (refused === undefined) this.#toServer(sent, exchange);
    else this.#answerFromServer(refused, exchange);
  }

  #refusal(exchange: Exchange, request: Frame): BridgeError | undefined {
    if (this.#state === 'draining' || this.isClosed) {
      return new BridgeError('ERR_SESSION_CLOSED', 'This session is ending and takes no new calls; open a new one.');
    }
    const refusal = this.#open.refusalOf(exchange);
    // A session without a handshake would only take a slot; how many sessions there are is limited by itself.
    if (refusal !== undefined || exchange.method === INITIALIZE) return refusal;
    return this.#exchanges.refusalOf(request);
  }

  #notificationFromClient(frame: Frame): void {
    if (frame.method !== CANCELLED) {
      // A notification has no answer, but a server may carry out the call that it names.
      return this.#exchanges.answerToHidden(frame) === undefined ? this.#toServer(frame) : undefined;
    }
    const cancelled = findCancelledId(frame);
    const exchange = cancelled && this.#open.find(cancelled.value);
    if (exchange === undefined) {
      // Answered meanwhile, or never asked. [spec 2025-11-25 basic/utilities/cancellation] may be ignored.
      return this.#log.debug('client cancelled a request that is not open');
    }
    // [spec 2025-11-25 basic/utilities/cancellation] a client must not cancel `initialize`.
    if (exchange.method === INITIALIZE) return;
    this.#exchanges.cancel(this, exchange);
    this.#toServer(frame, exchange);
    this.#peer?.release(exchange);
  }

  #answerFromClient(frame: Frame): void {
    if (this.#questions.answered(frame.id)) this.#toServer(frame);
    else this.#log.debug('client answered a request that is not open');
  }

  #toServer(frame: Frame, exchange?: Exchange): void {
    if (this.#link !== undefined && !this.#link.send(frame, exchange)) this.#peer?.pause();
  }

  /** What follows came as an array, which only one revision has. */
  batched(): void {
    this.#presence.used('batch');
  }

  clientDrained(): void {
    this.#link?.resume();
  }

  clientClosed(reason: BridgeError): void {
    this.close(reason);
  }

  undeliverable(request: Frame, reason: BridgeError): void {
    if (this.#questions.answered(request.id)) this.#toServer(errorFrame(request.id, rpcErrorOf(reason)));
  }

  /**
   * The client says nothing more, but waits for its answers: what the server has asked it, or asks from now on, gets this
   * one, so that a call that needs it can end.
   */
  refuseQuestions(reason: BridgeError): void {
    this.#questions.refuse(reason);
    this.#refuseOpenQuestions(reason);
  }

  #refuseOpenQuestions(reason: BridgeError): void {
    for (const id of this.#questions.takeAll()) this.#link?.send(errorFrame(id, rpcErrorOf(reason)));
  }

  // ---- from the server

  fromServer(frame: Frame, known?: Exchange): void {
    if (this.isClosed) return;
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answerFromServer(frame, known);
      case 'notification':
        return this.#notificationFromServer(frame, known);
      case 'request':
        return this.#requestFromServer(frame, known);
      default:
        return assertNever(frame.kind);
    }
  }

  #answerFromServer(frame: Frame, known: Exchange | undefined): void {
    const exchange = known ?? this.#exchangeOf(frame);
    if (exchange?.state.kind !== 'open') {
      return this.#log.debug({ id: frame.id }, 'server answered a request that is not open');
    }
    const answer = this.#exchanges.answer(this, exchange, frame);
    if (exchange.progressToken !== undefined && createsTask(frame)) {
      this.#taskTokens ??= new TaskTokens();
      this.#taskTokens.add(exchange.progressToken);
    }
    if (exchange.method === INITIALIZE) return this.#handshakeAnswered(answer, exchange);
    this.#toClient(answer, exchange);
  }

  #exchangeOf(frame: Frame): Exchange | undefined {
    if (frame.id !== undefined) return this.#open.find(frame.id);
    // An error without id: the server could not read a request. With one call open it was that one.
    return this.#open.sole();
  }

  #handshakeAnswered(frame: Frame, exchange: Exchange): void {
    if (frame.kind === 'error') {
      this.#toClient(frame, exchange);
      return this.#handshakeFailed(failureToldBy(frame) ?? REFUSED);
    }
    const revision = servedRevision(readField(frame, 'protocolVersion'));
    if (this.#state === 'opening') {
      this.#state = 'ready';
      this.#presence.agreed(revision.id);
    }
    this.#peer?.negotiated(revision);
    this.#options.onReady(revision);
    this.#toClient(frame, exchange);
    this.#tellEarly();
  }

  /** Without a handshake there is no session. A second one is the server's to refuse; what runs goes on. */
  #handshakeFailed(reason: BridgeError): void {
    if (this.#state !== 'ready') this.close(reason);
  }

  #notificationFromServer(frame: Frame, known: Exchange | undefined): void {
    if (this.#rules.changes === 'on-a-subscription') return this.#notificationOfSubscription(frame, known);
    if (this.#state === 'opening') return this.#tooEarly(frame);
    if (frame.method === PROGRESS) return this.#progress(frame, known);
    const exchange = known ?? findCallOf(frame, this.#open, this.#questions);
    if (exchange !== undefined) this.#exchanges.heard(exchange);
    this.#toClient(frame, exchange);
  }

  /** Some clients end a connection whose first message is not the answer to their first request. */
  #tooEarly(frame: Frame): void {
    this.#early ??= new ByteQueue(EARLY_LIMITS, ({ bytes }) => bytes.length);
    if (this.#early.fits(frame)) return this.#early.add(frame);
    this.#log.debug({ method: frame.method }, 'notification dropped: too much came before the answer to initialize');
  }

  #tellEarly(): void {
    const early = this.#early;
    this.#early = undefined;
    for (const frame of early?.takeAll() ?? []) this.#notificationFromServer(frame, undefined);
  }

  /**
   * Progress is for the call that has its token, under the token that the client gave. [spec 2025-11-25
   * basic/utilities/progress#behavior-requirements] Some clients end the connection at any other.
   */
  #progress(frame: Frame, known?: Exchange): void {
    const token = findProgressOf(frame);
    // Two calls of one client may have the same token.
    const isKnown = known?.state.kind === 'open' && token !== undefined && known.progressToken === token.value;
    const exchange = isKnown ? known : token && this.#open.findByToken(token.value);
    if (exchange === undefined) {
      if (token !== undefined && this.#taskTokens?.has(token.value)) return this.#toClient(frame);
      return this.#log.debug('progress dropped: its token is of no open call');
    }
    this.#exchanges.heard(exchange);
    const given = exchange.progressToken as JsonRpcId; // it was found by it
    const own = given === token?.value ? frame : rewriteProgress(frame, encodeId(given), token);
    if (own !== undefined) this.#toClient(own, exchange);
  }

  #notificationOfSubscription(frame: Frame, known: Exchange | undefined): void {
    if (frame.method === PROGRESS && known === undefined) return this.#progress(frame);
    const addressee = findAddressee(frame, known, this.#open);
    if (addressee === 'client') return this.#toClient(frame);
    if (addressee === 'nobody') {
      return this.#log.debug({ method: frame.method }, 'notification dropped: it is of no open request');
    }
    this.#exchanges.heard(addressee);
    // A server may end a subscription by this notification, or by an answer.
    if (frame.method === CANCELLED) this.#exchanges.endedByServer(this, addressee, frame);
    this.#toClient(frame, addressee);
  }

  #requestFromServer(frame: Frame, known: Exchange | undefined): void {
    if (this.#rules.serverAsks === 'input-required') {
      // [spec 2026-07-28 transports/stdio#receiving-messages] must not be written, nor answered.
      this.#unasked ??= new ModernQuestions();
      return this.#unasked.ignore(frame, this.#log);
    }
    const answer = this.#questions.answerAtOnce(frame);
    if (answer !== undefined) return this.#toServer(answer);
    const exchange = known ?? this.#open.likelyAsker();
    this.#questions.open(frame.id as JsonRpcId, exchange);
    if (frame.method === SAMPLE) this.#presence.used('sampling');
    else if (frame.method === LIST_ROOTS) this.#presence.used('roots');
    this.#toClient(frame, exchange);
  }

  #toClient(frame: Frame, exchange?: Exchange): void {
    if (exchange !== undefined) exchange.sentBytes += frame.bytes.length;
    if (this.#peer !== undefined && !this.#peer.send(frame, exchange)) this.#link?.pause();
  }

  serverFault(fault: ServerFault): void {
    if (this.isClosed) return;
    this.#log.error({ code: fault.error.code }, fault.error.message);
    if (fault.kind === 'notification') return;
    if (fault.kind === 'request' && this.#rules.serverAsks === 'input-required') return;
    if (fault.kind === 'request' && fault.id !== undefined) {
      return this.#toServer(errorFrame(fault.id, rpcErrorOf(fault.error)));
    }
    const exchange = fault.id === undefined ? this.#open.sole() : this.#open.find(fault.id);
    if (exchange === undefined) return;
    this.#fail(exchange, fault.error);
    if (exchange.method === INITIALIZE) this.#handshakeFailed(fault.error);
  }

  serverDrained(): void {
    this.#peer?.resume();
  }

  serverClosed(reason: BridgeError): void {
    this.close(reason);
  }

  // ---- time and end

  /** Fails the calls that have been silent, or open, for too long. */
  sweep(nowMs: number): void {
    for (const exchange of this.#open.all()) {
      // To fail one may end the session, and with it the others.
      if (exchange.state.kind !== 'open') continue;
      const timedOut = this.#exchanges.timeOut(this, exchange, nowMs, this.#options);
      if (timedOut === undefined) continue;
      if (exchange.method !== INITIALIZE) this.#toServer(withdrawal(exchange, 'timed out'), exchange);
      this.#toClient(timedOut.answer, exchange);
      if (exchange.method === INITIALIZE) this.#handshakeFailed(timedOut.error);
    }
  }

  /** Refuses new calls; the open ones go on. Subscriptions, which would never end, end. */
  drain(): void {
    if (this.isClosed) return;
    this.#state = 'draining';
    if (this.#rules.changes === 'unasked') return;
    for (const exchange of this.#open.all()) {
      // To end one may end the relay, and with it the others.
      if (exchange.method !== LISTEN || exchange.state.kind !== 'open') continue;
      const answer = this.#exchanges.endSubscription(this, exchange);
      this.#toServer(withdrawal(exchange, 'the bridge is shutting down'), exchange);
      this.#toClient(answer, exchange);
    }
  }

  /** Answers what is open with the reason, then lets both ends go. */
  close(reason: BridgeError): void {
    if (this.isClosed) return;
    this.#state = 'closed';
    this.#endReason = reason;
    for (const exchange of this.#open.all()) this.#endCall(exchange, reason);
    this.#refuseOpenQuestions(reason);
    this.#closeEnds(reason);
    this.#presence.left(reason.code);
    this.#options.onEnd(reason);
  }

  #endCall(exchange: Exchange, reason: BridgeError): void {
    if (this.#options.goesOn?.(exchange) !== true) return this.#fail(exchange, reason);
    this.#questions.forget(exchange);
    this.#exchanges.cancel(this, exchange);
  }

  #closeEnds(reason: BridgeError): void {
    this.#peer?.close(reason);
    this.#link?.close(reason);
  }

  #fail(exchange: Exchange, error: BridgeError): void {
    this.#toClient(this.#exchanges.fail(this, exchange, error), exchange);
  }

  // ---- for the exchanges

  ended(exchange: Exchange): void {
    this.#open.remove(exchange);
  }

  describe(request: Frame): ObservedClient {
    return this.#presence.describe(request);
  }
}
