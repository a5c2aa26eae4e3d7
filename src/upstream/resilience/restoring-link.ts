import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { CANCELLED, INITIALIZE, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { TOO_MANY_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import { type ClientRequest, Exchange, type Lane } from '../../relay/exchange.ts';
import type { LinkOwner, ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import { Restoration, type RestoredConnection, type TimeLimit } from '../../relay/sessions/restore-session.ts';
import { isStanding, type SessionState } from '../../relay/sessions/session-state.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';

/** Pause before a lost connection is opened again. It is doubled after each failure, up to the maximum. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Messages that may wait while there is no connection. */
const MAX_WAITING = 1024;
export const MAX_WAITING_BYTES = 8 * 1024 * 1024;

export interface RestoringOptions {
  readonly deps: Pick<Deps, 'clock' | 'log' | 'randomId'>;
  /** Time limit for the handshake of a new connection. 0 means no limit. */
  readonly handshakeTimeoutMs: number;
  /**
   * The state of the session, which is kept up to date here. If the session has begun elsewhere, the first connection
   * is restored to this state, and tried again until it succeeds.
   */
  readonly session: SessionState;
  /**
   * The consequence of a lost connection.
   * - `goes-on`: the session continues on another connection, even if the server there offers something else, for a
   *   client that cannot be made to open a new session.
   * - `ends`: the session ends, and its client opens a new one. The session also ends if the connection it is restored
   *   on speaks another revision.
   */
  readonly afterLoss: 'goes-on' | 'ends';
  /**
   * The time of the first connection for a session that has begun elsewhere.
   * - `at-once`: immediately.
   * - `with-a-request`: at the client's first request, whose headers the server requires.
   */
  readonly begins: 'at-once' | 'with-a-request';
  /** The client's first request, if it was sent already on the connection that is dialled first. */
  readonly sent?: ClientRequest | undefined;
}

/**
 * - `live`: connected. Before the client's handshake has succeeded a loss is final, because the client can simply try
 *   again.
 * - `reviving`: the session is being restored on a new connection. Messages wait.
 * - `pausing`: there is no connection. The next message or the timer opens one.
 * - `awaiting`: there is no connection. The client's next request opens one.
 * - `closed`: ended for good.
 */
type LinkState =
  | { readonly kind: 'live'; readonly link: UpstreamLink }
  | { readonly kind: 'reviving'; readonly link: UpstreamLink; readonly cancel: () => void }
  | { readonly kind: 'pausing'; readonly cancel: () => void }
  | { readonly kind: 'awaiting' | 'closed' };

interface OpenCall {
  readonly exchange: Exchange;
  /** The request, if its success changes the state of the session. */
  readonly standing: Frame | undefined;
}

/**
 * A request of the bridge that restores the session's state on a new connection. The client had its answer long ago.
 */
interface OwnRequest {
  readonly exchange: Exchange;
  readonly answered: (answer: Frame) => void;
}

/**
 * A session whose connection can be replaced. Each new connection gets the handshake, the log level and the
 * subscriptions. Open calls on a lost connection fail, and are never repeated.
 */
export class RestoringLink implements UpstreamLink, LinkOwner, RestoredConnection {
  readonly delivery = 'pipe';
  readonly timeLimit: TimeLimit;
  readonly log: Logger;
  readonly #dialer: SessionDialer;
  readonly #listener: ServerListener;
  readonly #options: RestoringOptions;
  /** Requests without an answer, by the client's id. */
  readonly #open = new Map<JsonRpcId, OpenCall>();
  readonly #questions = new Set<JsonRpcId>();
  readonly #own = new Map<JsonRpcId, OwnRequest>();
  readonly #waiting = new ByteQueue<ClientRequest>({ maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES }, frameBytes);
  /**
   * Notifications of possible changes. The client gets them when the server has answered everything that restores the
   * session, because the server reports later changes itself.
   */
  #missed: readonly Frame[] = [];
  /** Forwarded headers of the client's latest request. */
  #headers: Lane['headers'];
  #pauseMs = FIRST_PAUSE_MS;
  #isPaused = false;
  #state: LinkState;

  /** Throws what the dialer throws, if the session begins here. */
  constructor(dialer: SessionDialer, listener: ServerListener, options: RestoringOptions) {
    const { deps, handshakeTimeoutMs } = options;
    this.#dialer = dialer;
    this.#listener = listener;
    this.#options = options;
    this.log = deps.log;
    this.timeLimit = {
      clock: deps.clock,
      timeoutMs: handshakeTimeoutMs,
      exceeded: () => timedOut(dialer.name, handshakeTimeoutMs),
    };
    this.#state = this.#begin();
    if (options.sent !== undefined) this.#note(options.sent.frame, options.sent.exchange);
  }

  #begin(): LinkState {
    const { session, begins } = this.#options;
    if (session.offer === undefined) return { kind: 'live', link: this.#dialer.dial(this) };
    if (begins === 'with-a-request') return { kind: 'awaiting' };
    // No message may reach the listener before the constructor has returned.
    queueMicrotask(() => this.#revive());
    return { kind: 'pausing', cancel: () => {} };
  }

  // ---- from the client

  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    const isOfClient = exchange?.lane.isOpen === true;
    if (isOfClient && frame.kind === 'request') this.#headers = exchange.lane.headers;
    switch (this.#state.kind) {
      case 'live':
        if (!this.#note(frame, exchange)) return true;
        return this.#state.link.send(frame, exchange);
      case 'pausing':
        this.#wait(frame, exchange);
        this.#revive();
        return true;
      case 'awaiting':
        this.#wait(frame, exchange);
        if (isOfClient) this.#reviveNow();
        return true;
      case 'reviving':
        this.#wait(frame, exchange);
        return true;
      case 'closed':
        return true;
    }
  }

  /** Returns false if the message is a subscription beyond the limit, which has been refused. */
  #note(frame: Frame, exchange: Exchange | undefined): boolean {
    if (frame.kind === 'request' && exchange !== undefined) {
      if (!this.#options.session.reserve(frame)) {
        this.#listener.fromServer(errorFrame(exchange.id, rpcErrorOf(TOO_MANY_SUBSCRIBED)), exchange);
        return false;
      }
      this.#open.set(exchange.id, { exchange, standing: isStanding(exchange.method) ? frame : undefined });
    } else if (frame.method === INITIALIZED) this.#options.session.isInitialized = true;
    else if (frame.method === CANCELLED && exchange !== undefined) this.#open.delete(exchange.id);
    else if (frame.isResponse && frame.id !== undefined) this.#questions.delete(frame.id);
    return true;
  }

  #wait(frame: Frame, exchange: Exchange | undefined): void {
    // The question that this answers was asked on the lost connection.
    if (frame.isResponse) return;
    if (!this.#waiting.isFull) this.#waiting.add({ frame, exchange });
    else if (exchange?.state.kind === 'open') {
      const error = new BridgeError('ERR_UPSTREAM_STARTING', `${this.#dialer.name} is being reconnected; try again.`);
      this.#listener.fromServer(errorFrame(exchange.id, rpcErrorOf(error)), exchange);
    }
  }

  pause(): void {
    this.#isPaused = true;
    this.#link()?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#link()?.resume();
  }

  close(reason: BridgeError): void {
    const link = this.#link();
    if (this.#state.kind === 'pausing' || this.#state.kind === 'reviving') this.#state.cancel();
    this.#state = { kind: 'closed' };
    this.#waiting.takeAll();
    this.#own.clear();
    link?.close(reason);
  }

  /** Ends the session and notifies the listener, so that all open calls fail. */
  #endSession(reason: BridgeError): void {
    this.close(reason);
    this.#listener.serverClosed(reason);
  }

  #link(): UpstreamLink | undefined {
    return this.#state.kind === 'live' || this.#state.kind === 'reviving' ? this.#state.link : undefined;
  }

  // ---- from the server

  serverFound(link: UpstreamLink): void {
    if (this.#state.kind === 'live' || this.#state.kind === 'reviving') this.#state = { ...this.#state, link };
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (frame.isResponse) return this.#answered(frame, exchange);
    if (frame.kind === 'request' && frame.id !== undefined) this.#questions.add(frame.id);
    else if (frame.method === CANCELLED) this.#questions.delete(findCancelledId(frame)?.value ?? '');
    const isOwn = exchange !== undefined && this.#own.get(exchange.id)?.exchange === exchange;
    this.#listener.fromServer(frame, isOwn ? undefined : exchange);
  }

  #answered(frame: Frame, known: Exchange | undefined): void {
    const id = known?.id ?? frame.id;
    const own = id === undefined ? undefined : this.#own.get(id);
    if (own !== undefined) {
      this.#own.delete(own.exchange.id);
      own.answered(frame);
      return this.#tellMissed();
    }
    const call = id === undefined ? undefined : this.#open.get(id);
    if (call !== undefined) {
      this.#open.delete(call.exchange.id);
      if (call.standing !== undefined) this.#noteStanding(call.standing, frame);
    }
    this.#listener.fromServer(frame, known ?? call?.exchange);
  }

  #noteStanding(request: Frame, answer: Frame): void {
    const { session } = this.#options;
    if (answer.kind !== 'result') return session.failed(request);
    if (request.method === INITIALIZE) session.continuation = 'new-session';
    session.succeeded(request, answer);
  }

  serverFault(fault: ServerFault): void {
    const isOwn = fault.kind !== 'request' && fault.id !== undefined && this.#own.has(fault.id);
    if (!isOwn) return this.#listener.serverFault(fault);
    this.#answered(errorFrame(fault.id, rpcErrorOf(fault.error)), undefined);
  }

  serverDrained(): void {
    this.#listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#state.kind === 'closed') return;
    const wasReviving = this.#state.kind === 'reviving';
    if (this.#state.kind === 'reviving') this.#state.cancel();
    this.#own.clear();
    this.#missed = [];
    this.#failOpen(reason);
    const { session, afterLoss } = this.#options;
    if (session.initialize === undefined || (afterLoss === 'ends' && !wasReviving)) return this.#endSession(reason);
    if (wasReviving) return this.#notRevived(reason);
    // The loss and its reason were logged by the connection.
    this.log.info(`reconnecting to ${this.#dialer.name}`);
    this.#pauseThenRevive();
  }

  #failOpen(reason: BridgeError): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { exchange, standing } of open) {
      if (standing !== undefined) this.#options.session.failed(standing);
      if (exchange.state.kind === 'open') {
        this.#listener.fromServer(errorFrame(exchange.id, rpcErrorOf(reason)), exchange);
      }
    }
    const questions = [...this.#questions];
    this.#questions.clear();
    for (const requestId of questions) {
      this.#listener.fromServer(notificationFrame(CANCELLED, { requestId, reason: 'the server is gone' }));
    }
  }

  // ---- restoring

  #pauseThenRevive(): void {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2);
    const cancel = this.#options.deps.clock.after(pauseMs, () => this.#revive());
    this.#state = { kind: 'pausing', cancel };
  }

  #revive(): void {
    if (this.#state.kind !== 'pausing') return;
    this.#state.cancel();
    this.#reviveNow();
  }

  #reviveNow(): void {
    try {
      const link = this.#dialer.dial(this);
      const restoration = new Restoration(this.#options.session, this);
      this.#state = { kind: 'reviving', link, cancel: () => restoration.cancel() };
      restoration.start();
    } catch (thrown) {
      this.#notRevived(toBridgeError(thrown));
    }
  }

  ask(method: string, params: object, answered: (answer: Frame) => void): void {
    const { clock, randomId } = this.#options.deps;
    const id = randomId();
    const lane = { isOpen: true, headers: this.#headers };
    const exchange = new Exchange(id, method, lane, undefined, clock.now());
    this.#own.set(id, { exchange, answered });
    this.#link()?.send(requestFrame(id, method, params), exchange);
  }

  tell(method: string, taken: () => void): void {
    this.#link()?.send(notificationFrame(method));
    taken();
  }

  /** A client that cannot be notified of another revision continues nevertheless. */
  offered({ protocolVersion }: Fields): boolean {
    const { session, afterLoss } = this.#options;
    if (afterLoss === 'goes-on' || protocolVersion === session.offer?.protocolVersion) return true;
    this.#endSession(OTHER_REVISION);
    return false;
  }

  refusal(): BridgeError {
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${this.#dialer.name} refused initialize when reconnected.`);
  }

  failed(reason: BridgeError): void {
    this.#link()?.close(reason);
    this.serverClosed(reason);
  }

  /** Logs that no connection could be opened. The client gets an error only for requests that wait. */
  #notRevived(reason: BridgeError): void {
    this.log.warn({ code: reason.code }, `not reconnected: ${reason.message}`);
    this.#failWaiting(reason);
    this.#pauseThenRevive();
  }

  restored(missed: readonly Frame[]): void {
    if (this.#state.kind !== 'reviving') return;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#state = { kind: 'live', link: this.#state.link };
    // The connection is paused only now, because the answer to its handshake had to be read.
    if (this.#isPaused) this.#state.link.pause();
    this.log.info(`reconnected to ${this.#dialer.name}`);
    this.#missed = missed;
    this.#tellMissed();
    let hasCapacity = true;
    for (const { frame, exchange } of this.#waiting.takeAll()) {
      const isOver = exchange !== undefined && exchange.state.kind !== 'open';
      hasCapacity = (isOver || this.send(frame, exchange)) && hasCapacity;
    }
    // The lost connection may have been full, and will never drain.
    if (hasCapacity) this.#listener.serverDrained();
  }

  #tellMissed(): void {
    if (this.#own.size > 0) return;
    const missed = this.#missed;
    this.#missed = [];
    for (const notification of missed) this.#listener.fromServer(notification);
  }

  #failWaiting(reason: BridgeError): void {
    for (const { exchange } of this.#waiting.takeAll()) {
      if (exchange?.state.kind === 'open') {
        this.#listener.fromServer(errorFrame(exchange.id, rpcErrorOf(reason)), exchange);
      }
    }
    this.#listener.serverDrained();
  }
}

const OTHER_REVISION = new BridgeError(
  'ERR_UPSTREAM_PROTOCOL',
  'The server speaks another revision now than when this session was opened; open a new session.',
);

/**
 * Returns the error for a server that does not answer. Without the limit, all messages would wait as long as the
 * connection stays open.
 */
function timedOut(name: string, timeoutMs: number): BridgeError {
  const message = `${name} did not answer initialize within ${timeoutMs} ms when reconnected; raise --request-timeout if it needs longer.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
}
