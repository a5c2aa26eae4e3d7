import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { CANCELLED, INITIALIZE, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { TOO_MANY_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import { Exchange, type Lane } from '../../relay/exchange.ts';
import type { SentRequest } from '../../relay/passing-link.ts';
import type { ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import { Restoration, type RestoredConnection, type TimeLimit } from '../../relay/sessions/restore-session.ts';
import { isStanding, type SessionState } from '../../relay/sessions/session-state.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';

/** Pause before a lost connection is tried again, doubled after each failure. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Messages that may wait while a connection is being made. */
const MAX_WAITING = 1024;
export const MAX_WAITING_BYTES = 8 * 1024 * 1024;

export interface RestoringOptions {
  readonly deps: Pick<Deps, 'clock' | 'log' | 'randomId'>;
  /** How long the handshake of a new connection may take; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /**
   * What the client has set up, kept up to date here. Where it has begun elsewhere, the first connection is brought to it,
   * and tried again until there is one.
   */
  readonly session: SessionState;
  /**
   * What becomes of the session when a connection is lost.
   * - `goes-on`: with another one, whatever that offers, for a client that cannot be told to open a new session.
   * - `ends`: its client opens a new one; and so it does where another connection speaks another revision.
   */
  readonly afterLoss: 'goes-on' | 'ends';
  /**
   * When the first connection of a session that has begun elsewhere is made.
   * - `at-once`: by itself.
   * - `with-a-request`: with the first request of the client, whose headers the server wants to see.
   */
  readonly begins: 'at-once' | 'with-a-request';
  /** The client's first request, if it was sent already on the connection that is dialled first. */
  readonly sent?: SentRequest | undefined;
}

/**
 * - `live`: connected; before the client's handshake is done a loss is final, the client can simply try again.
 * - `reviving`: a new connection makes its handshake; messages wait.
 * - `pausing`: there is no connection; the next message or the timer tries to make one.
 * - `awaiting`: there is none; the next request of the client tries to make one.
 * - `closed`: for good.
 */
type LinkState =
  | { readonly kind: 'live'; readonly link: UpstreamLink }
  | { readonly kind: 'reviving'; readonly link: UpstreamLink; readonly cancel: () => void }
  | { readonly kind: 'pausing'; readonly cancel: () => void }
  | { readonly kind: 'awaiting' | 'closed' };

interface Waiting {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

interface OpenCall {
  readonly exchange: Exchange;
  /** The message, where its success is worth remembering. */
  readonly standing: Frame | undefined;
}

/** A question that a new connection is asked to be where the one before was; the client had its answer long ago. */
interface OwnRequest {
  readonly exchange: Exchange;
  readonly answered: (answer: Frame) => void;
}

/**
 * A session whose connections may take each other's place: each new one gets the handshake, the log level and the
 * subscriptions. Calls in flight on a connection that is lost fail, and are never made again.
 */
export class RestoringLink implements UpstreamLink, ServerListener, RestoredConnection {
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
  readonly #waiting = new ByteQueue<Waiting>({ maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES }, frameBytes);
  /** "Look again", told as soon as the server has taken all it is asked for: what changes from then on it tells itself. */
  #missed: readonly Frame[] = [];
  /** What the server may see of the latest request of the client. */
  #headers: Lane['headers'];
  #pauseMs = FIRST_PAUSE_MS;
  #isPaused = false;
  #state: LinkState;

  /** Throws what the dialer throws, where the session begins here. */
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
    // Whoever dials is prepared for what the server says only then.
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

  /** False: it is a subscription beyond the limit, and has been refused. */
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
    // An answer is to a question of the connection that is gone.
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

  /** The client hears of the end, and with it all whose answers it waits for. */
  #endSession(reason: BridgeError): void {
    this.close(reason);
    this.#listener.serverClosed(reason);
  }

  #link(): UpstreamLink | undefined {
    return this.#state.kind === 'live' || this.#state.kind === 'reviving' ? this.#state.link : undefined;
  }

  // ---- from the server

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
    // What was lost, and why, the connection has said.
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

  // ---- coming back

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

  /** A client that cannot be told of another revision goes on all the same. */
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

  /** Nobody but the log is told of a connection that could not be made, unless a message waits. */
  #notRevived(reason: BridgeError): void {
    this.log.warn({ code: reason.code }, `not reconnected: ${reason.message}`);
    this.#failWaiting(reason);
    this.#pauseThenRevive();
  }

  restored(missed: readonly Frame[]): void {
    if (this.#state.kind !== 'reviving') return;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#state = { kind: 'live', link: this.#state.link };
    // Not before: what is not read answers no handshake.
    if (this.#isPaused) this.#state.link.pause();
    this.log.info(`reconnected to ${this.#dialer.name}`);
    this.#missed = missed;
    this.#tellMissed();
    let hasCapacity = true;
    for (const { frame, exchange } of this.#waiting.takeAll()) {
      const isOver = exchange !== undefined && exchange.state.kind !== 'open';
      hasCapacity = (isOver || this.send(frame, exchange)) && hasCapacity;
    }
    // The lost connection may have been full; it will never drain.
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

/** A server that never answers would have everything wait for it, for as long as it keeps the connection. */
function timedOut(name: string, timeoutMs: number): BridgeError {
  const message = `${name} did not answer initialize within ${timeoutMs} ms when reconnected; raise --request-timeout if it needs longer.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
}
