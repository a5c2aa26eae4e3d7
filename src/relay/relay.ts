import type { Logger } from 'pino';
import { ByteQueue } from '../collections/bounded-collections.ts';
import { assertNever, BridgeError } from '../errors.ts';
import { findCanceledId, findProgressOf, rewriteProgress } from '../mcp/classify/correlators.ts';
import { ModernQuestions } from '../mcp/classify/modern-questions.ts';
import { CANCELED, INITIALIZE, LIST_ROOTS, LISTEN, PROGRESS, SAMPLE, SET_LEVEL } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import { ERAS, type Era, type EraRules, type Revision, servedRevision } from '../mcp/vocabulary/revisions.ts';
import { failureToldBy, rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import { encodeId, type Frame, type JsonRpcId } from '../wire/frame.ts';
import { errorFrame, notificationFrame } from '../wire/write-message.ts';
import { type Call, CallTable, INITIALIZE_TOO_LARGE, type Lane } from './call.ts';
import { type CallOwner, type Calls, type CallTimes, withdrawal } from './calls.ts';
import { ClientPresence } from './client-presence.ts';
import type { MessageTap } from './message-tap.ts';
import { createsTask, findAddressee, findCallOf, TaskTokens } from './notifications.ts';
import type { ClientOrigin, ObservedClient } from './observer.ts';
import type { ClientListener, DownstreamPeer, LinkOwner, ServerFault, ServerProcess, UpstreamLink } from './ports.ts';
import { Questions } from './questions.ts';
import type { SessionRestorer } from './sessions/session-restorer.ts';

export interface RelayOptions extends CallTimes {
  readonly log: Logger;
  /** Begins and ends the calls of this client and of all others. */
  readonly calls: Calls;
  readonly origin: ClientOrigin;
  /** The era of both ends. A modern relay is `ready` from the start, and its server asks nothing. */
  readonly era: Era;
  /** Calls that this client may have open. Default: MAX_OPEN_CALLS. */
  readonly maxSessionInFlight?: number | undefined;
  /** Sees what passes between client and bridge. Undefined if nothing is recorded. */
  readonly tap?: MessageTap | undefined;
  /** Called when the handshake has succeeded. */
  readonly onReady: (revision: Revision) => void;
  /**
   * Called for each open call at the end. Returns true if another bridge waits for the call's answer, so that the
   * client gets no error here.
   */
  readonly goesOn?: ((call: Call) => boolean) | undefined;
  /**
   * Called once when the relay is closed: one end is gone, or the handshake failed. Both ends have been closed then.
   */
  readonly onEnd: (reason: BridgeError) => void;
}

/**
 * Limits for notifications that come before the answer to `initialize`. Further ones are dropped; servers send few so
 * early.
 */
const EARLY_LIMITS = { maxItems: 100, maxBytes: 1024 * 1024 };

const REFUSED = new BridgeError('ERR_UPSTREAM_PROTOCOL', 'The server refused initialize; its error was passed on.');

/**
 * - `opening`: no `initialize` has succeeded yet.
 * - `ready`: messages pass in both directions.
 * - `draining`: open calls may finish, and new ones are refused.
 * - `closed`: both ends have been closed.
 */
type RelayState = 'opening' | 'ready' | 'draining' | 'closed';

/**
 * Joins one client with one server. Both speak the same era, so messages pass unchanged. The relay decides the
 * recipient of each message, and ensures that every request is answered exactly once or withdrawn.
 */
export class Relay implements ClientListener, LinkOwner, CallOwner {
  readonly #options: RelayOptions;
  readonly #log: Logger;
  readonly #calls: Calls;
  readonly #open: CallTable;
  readonly #rules: EraRules;
  readonly #tap: MessageTap | undefined;
  readonly #questions: Questions;
  readonly #presence: ClientPresence;
  #state: RelayState;
  #peer: DownstreamPeer | undefined;
  #link: UpstreamLink | undefined;
  /** Keeps the state of the session, if that can outlive its connection. */
  #restorer: SessionRestorer | undefined;
  #endReason: BridgeError | undefined;
  #unasked: ModernQuestions | undefined;
  #taskTokens: TaskTokens | undefined;
  /** Notifications that came before the server's answer to `initialize`. */
  #early: ByteQueue<Frame> | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#rules = ERAS[options.era];
    this.#tap = options.tap;
    this.#calls = options.calls;
    this.#open = new CallTable(options.maxSessionInFlight);
    this.#questions = new Questions(options.calls.clock);
    this.#presence = new ClientPresence(options.calls, options.origin, options.era);
    this.#state = this.#rules.begins === 'initialize' ? 'opening' : 'ready';
  }

  /** Called once, before the first message. If the relay has already ended, both ends are closed. */
  join(peer: DownstreamPeer, link: UpstreamLink, restorer?: SessionRestorer): void {
    this.#peer = peer;
    this.#link = link;
    this.#restorer = restorer;
    if (this.#endReason !== undefined) this.#closeEnds(this.#endReason);
  }

  /** Continues a session whose handshake was made on another bridge. Called after `join`. */
  resume(revision: Revision): void {
    if (this.#state !== 'opening') return;
    this.#state = 'ready';
    this.#presence.agreed(revision.id);
    this.#peer?.negotiated(revision);
    this.#options.onReady(revision);
    this.#tellEarly();
  }

  /** Continues a call that another bridge has sent to the server, in the form in which the server got its request. */
  resumeCall(request: Frame, lane: Lane): void {
    this.fromClient(this.#calls.asSent(request), lane);
  }

  /** Registers a question that another bridge has asked the client, in a call that continues here. */
  wasAsked(id: JsonRpcId, { id: callId }: Frame): void {
    const call = this.#open.find(callId as JsonRpcId);
    if (call !== undefined) this.#questions.open(id, call);
  }

  get principal(): string | undefined {
    return this.#options.origin.principal;
  }

  /** The process of the server, if this client has one to itself. */
  get process(): ServerProcess | undefined {
    return this.#link?.process;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** True while open calls may finish and new ones are refused. */
  get isDraining(): boolean {
    return this.#state === 'draining';
  }

  get openCalls(): number {
    return this.#open.size;
  }

  /** Returns true if a request of the client with this id has no answer yet. */
  isOpen(id: JsonRpcId): boolean {
    return this.#open.has(id);
  }

  // ---- from the client

  fromClient(frame: Frame, lane: Lane): void {
    if (this.#tap === undefined) this.#take(frame, lane);
    else this.#tap.received(frame, undefined, () => this.#take(frame, lane));
  }

  #take(frame: Frame, lane: Lane): void {
    // A request that comes after the end still gets an answer, with the reason.
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
    const call = this.#calls.receive(frame, lane);
    if (this.#presence.isAwaited) this.#presence.sees(frame);
    const refusal = this.#refusal(call, frame);
    if (refusal !== undefined) {
      const answer = this.#calls.refuse(this, frame, refusal);
      this.#tap?.sent(answer, call);
      this.#peer?.send(answer, call);
      if (refusal === INITIALIZE_TOO_LARGE) this.#handshakeFailed(refusal);
      return;
    }
    this.#open.add(call);
    const sent = this.#calls.open(this, call, frame);
    if (call.method === SET_LEVEL) this.#presence.used('logging');
    if (sent.kind === 'error') this.#answerFromServer(sent, call);
    else this.#toServer(sent, call);
  }

  #refusal(call: Call, request: Frame): BridgeError | undefined {
    if (this.#state === 'draining' || this.isClosed) {
      return new BridgeError('ERR_SESSION_CLOSED', 'This session is ending and takes no new calls; open a new one.');
    }
    const refusal = this.#open.refusalOf(call);
    // An `initialize` is exempt, because a session without a handshake would only take a slot. The number of sessions
    // has its own limit.
    if (refusal !== undefined || call.method === INITIALIZE) return refusal;
    return this.#calls.refusalOf(request);
  }

  #notificationFromClient(frame: Frame): void {
    if (frame.method !== CANCELED) {
      // A notification has no answer, but a server may carry out a tool call that is sent as one.
      const sent = this.#calls.toServer(this, frame);
      return sent.kind === 'error' ? undefined : this.#toServer(sent);
    }
    const canceled = findCanceledId(frame);
    const call = canceled && this.#open.find(canceled.value);
    if (call === undefined) {
      // The request was answered already, or never sent. Such a notification may be ignored.
      // [spec 2025-11-25 basic/utilities/cancellation]
      return this.#log.debug('client canceled a request that is not open');
    }
    // [spec 2025-11-25 basic/utilities/cancellation] a client must not cancel `initialize`.
    if (call.method === INITIALIZE) return;
    this.#calls.cancel(this, call);
    this.#toServer(frame, call);
    this.#peer?.release(call);
  }

  #answerFromClient(frame: Frame): void {
    if (this.#questions.answered(frame.id)) this.#toServer(frame);
    else this.#log.debug('client answered a request that is not open');
  }

  #toServer(frame: Frame, call?: Call): void {
    const refusal = this.#restorer?.sending(frame, call);
    if (refusal !== undefined && call !== undefined) return this.#answerFromServer(refusal, call);
    if (this.#link !== undefined && !this.#link.send(frame, call)) this.#peer?.pause();
  }

  /** Called if the messages that follow came as an array, which only one revision allows. */
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
   * Called when the client sends nothing more but still waits for answers. Open and later questions of the server get
   * this reason as their answer, so that calls that need an answer can end.
   */
  refuseQuestions(reason: BridgeError): void {
    this.#questions.refuse(reason);
    this.#refuseOpenQuestions(reason);
  }

  #refuseOpenQuestions(reason: BridgeError): void {
    for (const id of this.#questions.takeAll()) this.#link?.send(errorFrame(id, rpcErrorOf(reason)));
  }

  // ---- from the server

  serverFound(link: UpstreamLink): void {
    this.#link = link;
  }

  fromServer(frame: Frame, known?: Call): void {
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

  #answerFromServer(frame: Frame, known: Call | undefined): void {
    const call = known ?? this.#callOf(frame);
    if (call?.state.kind !== 'open') {
      return this.#log.debug({ id: frame.id }, 'server answered a request that is not open');
    }
    this.#restorer?.answered(call, frame);
    const answer = this.#calls.answer(this, call, frame);
    if (call.progressToken !== undefined && createsTask(frame)) {
      this.#taskTokens ??= new TaskTokens();
      this.#taskTokens.add(call.progressToken);
    }
    if (call.method === INITIALIZE) return this.#handshakeAnswered(answer, call);
    this.#toClient(answer, call);
  }

  #callOf(frame: Frame): Call | undefined {
    if (frame.id !== undefined) return this.#open.find(frame.id);
    // An error without an id means that the server could not read a request. If one call is open, it was that call's.
    return this.#open.sole();
  }

  #handshakeAnswered(frame: Frame, call: Call): void {
    if (frame.kind === 'error') {
      this.#toClient(frame, call);
      return this.#handshakeFailed(failureToldBy(frame) ?? REFUSED);
    }
    const revision = servedRevision(readField(frame, 'protocolVersion'));
    if (this.#state === 'opening') {
      this.#state = 'ready';
      this.#presence.agreed(revision.id);
    }
    this.#peer?.negotiated(revision);
    this.#options.onReady(revision);
    this.#toClient(frame, call);
    this.#tellEarly();
  }

  /**
   * Called when the handshake has failed. Without a handshake there is no session. A second `initialize` is the
   * server's to refuse, and its failure leaves a running session as it is.
   */
  #handshakeFailed(reason: BridgeError): void {
    if (this.#state !== 'ready') this.close(reason);
  }

  #notificationFromServer(frame: Frame, known: Call | undefined): void {
    if (this.#rules.changes === 'on-a-subscription') {
      return this.#notificationOfSubscription(this.#calls.notification(frame), known);
    }
    if (this.#state === 'opening') return this.#tooEarly(frame);
    if (frame.method === PROGRESS) return this.#progress(frame, known);
    const call = known ?? findCallOf(frame, this.#open, this.#questions);
    if (call !== undefined) this.#calls.heard(call);
    this.#toClient(frame, call);
  }

  /**
   * Keeps a notification until `initialize` is answered. Some clients end a connection whose first message is not the
   * answer to their first request.
   */
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
   * Passes progress to the call that has its token, under the token that the client chose.
   * [spec 2025-11-25 basic/utilities/progress#behavior-requirements] Some clients end the connection if they get an
   * unknown token.
   */
  #progress(frame: Frame, known?: Call): void {
    const token = findProgressOf(frame);
    // Two calls of one client may have the same token, so the call that the transport names comes first.
    const isKnown = known?.state.kind === 'open' && token !== undefined && known.progressToken === token.value;
    const call = isKnown ? known : token && this.#open.findByToken(token.value);
    if (call === undefined) {
      if (token !== undefined && this.#taskTokens?.has(token.value)) return this.#toClient(frame);
      return this.#log.debug('progress dropped: its token is of no open call');
    }
    this.#calls.heard(call);
    const given = call.progressToken as JsonRpcId; // the call was found by it
    const own = given === token?.value ? frame : rewriteProgress(frame, encodeId(given), token);
    if (own !== undefined) this.#toClient(own, call);
  }

  #notificationOfSubscription(frame: Frame, known: Call | undefined): void {
    if (frame.method === PROGRESS && known === undefined) return this.#progress(frame);
    const addressee = findAddressee(frame, known, this.#open);
    if (addressee === 'client') return this.#toClient(frame);
    if (addressee === 'nobody') {
      return this.#log.debug({ method: frame.method }, 'notification dropped: it is of no open request');
    }
    this.#calls.heard(addressee);
    // A server may end a subscription by this notification, or by an answer.
    if (frame.method === CANCELED) this.#calls.endedByServer(this, addressee, frame);
    this.#toClient(frame, addressee);
  }

  #requestFromServer(frame: Frame, known: Call | undefined): void {
    if (this.#rules.serverAsks === 'input-required') {
      // A modern server must not send requests on stdio, and such a request must not be answered.
      // [spec 2026-07-28 transports/stdio#receiving-messages]
      this.#unasked ??= new ModernQuestions();
      return this.#unasked.ignore(frame, this.#log);
    }
    const answer = this.#questions.answerAtOnce(frame);
    if (answer !== undefined) return this.#toServer(answer);
    const call = known ?? this.#open.likelyAsker();
    this.#questions.open(frame.id as JsonRpcId, call);
    if (frame.method === SAMPLE) this.#presence.used('sampling');
    else if (frame.method === LIST_ROOTS) this.#presence.used('roots');
    this.#toClient(frame, call);
  }

  #toClient(frame: Frame, call?: Call): void {
    if (call !== undefined) call.sentBytes += frame.bytes.length;
    this.#tap?.sent(frame, call);
    if (this.#peer !== undefined && !this.#peer.send(frame, call)) this.#link?.pause();
  }

  serverFault(fault: ServerFault): void {
    if (this.isClosed) return;
    this.#log.error({ code: fault.error.code }, fault.error.message);
    if (fault.kind === 'notification') return;
    if (fault.kind === 'request' && this.#rules.serverAsks === 'input-required') return;
    if (fault.kind === 'request' && fault.id !== undefined) {
      return this.#toServer(errorFrame(fault.id, rpcErrorOf(fault.error)));
    }
    const call = fault.id === undefined ? this.#open.sole() : this.#open.find(fault.id);
    if (call === undefined) return;
    this.#fail(call, fault.error);
    if (call.method === INITIALIZE) this.#handshakeFailed(fault.error);
  }

  serverDrained(): void {
    this.#peer?.resume();
  }

  serverClosed(reason: BridgeError): void {
    const link = this.isClosed ? undefined : this.#restorer?.lost();
    if (link === undefined) return this.close(reason);
    this.#link = link;
    for (const call of this.#open.all()) if (call.state.kind === 'open') this.#fail(call, reason);
    for (const requestId of this.#questions.takeAll()) {
      this.#toClient(notificationFrame(CANCELED, { requestId, reason: 'the server is gone' }));
    }
  }

  // ---- time and end

  /** Fails the calls that have been silent, or open, for too long. */
  sweep(nowMs: number): void {
    for (const call of this.#open.all()) {
      // Failing one call may end the session, and all other calls with it.
      if (call.state.kind !== 'open') continue;
      const timedOut = this.#calls.timeOut(this, call, nowMs, this.#options);
      if (timedOut === undefined) continue;
      this.#log.info({ code: timedOut.error.code }, timedOut.error.message);
      if (call.method !== INITIALIZE) this.#toServer(withdrawal(call, 'timed out'), call);
      this.#toClient(timedOut.answer, call);
      if (call.method === INITIALIZE) this.#handshakeFailed(timedOut.error);
    }
  }

  /** Refuses new calls and lets the open ones finish. Subscriptions would never finish, so they are ended. */
  drain(): void {
    if (this.isClosed) return;
    this.#state = 'draining';
    if (this.#rules.changes === 'unasked') return;
    for (const call of this.#open.all()) {
      // Ending one subscription may end the relay, and all other calls with it.
      if (call.method !== LISTEN || call.state.kind !== 'open') continue;
      const answer = this.#calls.endSubscription(this, call);
      this.#toServer(withdrawal(call, 'the bridge is shutting down'), call);
      this.#toClient(answer, call);
    }
  }

  /** Answers all open calls with the reason, and closes both ends. */
  close(reason: BridgeError): void {
    if (this.isClosed) return;
    this.#state = 'closed';
    this.#endReason = reason;
    for (const call of this.#open.all()) this.#endCall(call, reason);
    this.#refuseOpenQuestions(reason);
    this.#closeEnds(reason);
    this.#presence.left(reason.code);
    this.#options.onEnd(reason);
  }

  #endCall(call: Call, reason: BridgeError): void {
    if (this.#options.goesOn?.(call) !== true) return this.#fail(call, reason);
    this.#questions.forget(call);
    this.#calls.cancel(this, call);
  }

  #closeEnds(reason: BridgeError): void {
    this.#peer?.close(reason);
    this.#link?.close(reason);
  }

  #fail(call: Call, error: BridgeError): void {
    this.#toClient(this.#calls.fail(this, call, error), call);
  }

  // ---- as the owner of the calls

  ended(call: Call): void {
    this.#open.remove(call);
    this.#restorer?.ended(call);
  }

  describe(request: Frame): ObservedClient {
    return this.#presence.describe(request);
  }
}
