import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../collections/byte-queue.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { CANCELLED, INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { TOO_MANY_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import { Exchange, type Lane } from '../../relay/exchange.ts';
import { DecoratedDialer } from '../../relay/passing-link.ts';
import type { ServerFault, ServerListener, SessionDialer, UpstreamDialer, UpstreamLink } from '../../relay/ports.ts';
import { Restoration, type RestoredConnection, type TimeLimit } from '../../relay/sessions/restore-session.ts';
import { isStanding, SessionState } from '../../relay/sessions/session-state.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';

/** Pause before a lost connection is tried again, doubled after each failure. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Messages that may wait while a connection is being made. */
const MAX_WAITING = 1024;
export const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/**
 * Goes on with a new connection when one is lost: for a client that cannot be told to open a new session, because its
 * session is its pipe. Calls in flight fail; handshake, log level and subscriptions are repeated.
 */
export function createRevivingDialer(revived: UpstreamDialer, options: RevivingOptions): UpstreamDialer {
  return new DecoratedDialer(revived, (dialer, listener) => new RevivingLink(dialer, listener, options));
}

/** No client waits for the answers to what is asked to restore its session. */
const NO_LANE: Lane = { isOpen: false };

export interface RevivingOptions {
  readonly deps: Deps;
  /** How long the handshake of a new connection may take; 0: no limit. */
  readonly handshakeTimeoutMs: number;
}

/**
 * - `live`: connected; before the client's handshake is done a loss is final, the client can simply try again.
 * - `reviving`: a new connection makes its handshake; messages wait.
 * - `pausing`: the last attempt failed; the next message or the timer tries again.
 * - `closed`: for good.
 */
type LinkState =
  | { readonly kind: 'live'; readonly link: UpstreamLink }
  | { readonly kind: 'reviving'; readonly link: UpstreamLink; readonly cancel: () => void }
  | { readonly kind: 'pausing'; readonly cancel: () => void }
  | { readonly kind: 'closed' };

interface Waiting {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

interface OpenCall {
  readonly exchange: Exchange;
  /** The message, where its success is worth remembering. */
  readonly standing: Frame | undefined;
}

class RevivingLink implements UpstreamLink, ServerListener, RestoredConnection {
  readonly delivery = 'pipe';
  readonly timeLimit: TimeLimit;
  readonly log: Logger;
  readonly #dialer: SessionDialer;
  readonly #listener: ServerListener;
  readonly #deps: Deps;
  readonly #session = new SessionState();
  /** Requests without an answer, by the client's id. */
  readonly #open = new Map<JsonRpcId, OpenCall>();
  readonly #questions = new Set<JsonRpcId>();
  /** What a new connection is asked to be where the old one was; the client had its answers before. */
  readonly #own = new Map<JsonRpcId, (answer: Frame) => void>();
  readonly #waiting = new ByteQueue<Waiting>({ maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES }, frameBytes);
  #pauseMs = FIRST_PAUSE_MS;
  #state: LinkState;

  constructor(dialer: SessionDialer, listener: ServerListener, { deps, handshakeTimeoutMs }: RevivingOptions) {
    this.#dialer = dialer;
    this.#listener = listener;
    this.#deps = deps;
    this.log = deps.log;
    this.timeLimit = {
      clock: deps.clock,
      timeoutMs: handshakeTimeoutMs,
      exceeded: () => timedOut(dialer.name, handshakeTimeoutMs),
    };
    this.#state = { kind: 'live', link: dialer.dial(this) };
  }

  // ---- from the client

  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    switch (this.#state.kind) {
      case 'live':
        if (!this.#note(frame, exchange)) return true;
        return this.#state.link.send(frame, exchange);
      case 'pausing':
        this.#wait(frame, exchange);
        this.#revive();
        return true;
      case 'reviving':
        this.#wait(frame, exchange);
        return true;
      case 'closed':
        return true;
    }
  }

  /** False: it is a subscription there is no room for, and has been refused. */
  #note(frame: Frame, exchange: Exchange | undefined): boolean {
    if (frame.kind === 'request' && exchange !== undefined) {
      if (!this.#session.reserve(frame)) {
        this.#listener.fromServer(errorFrame(exchange.id, rpcErrorOf(TOO_MANY_SUBSCRIBED)), exchange);
        return false;
      }
      this.#open.set(exchange.id, { exchange, standing: isStanding(exchange.method) ? frame : undefined });
    } else if (frame.method === INITIALIZED) this.#session.isInitialized = true;
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
    this.#link()?.pause();
  }

  resume(): void {
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

  #link(): UpstreamLink | undefined {
    return this.#state.kind === 'live' || this.#state.kind === 'reviving' ? this.#state.link : undefined;
  }

  // ---- from the server

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (frame.isResponse) return this.#answered(frame, exchange);
    if (frame.kind === 'request' && frame.id !== undefined) this.#questions.add(frame.id);
    else if (frame.method === CANCELLED) this.#questions.delete(findCancelledId(frame)?.value ?? '');
    this.#listener.fromServer(frame, exchange);
  }

  #answered(frame: Frame, known: Exchange | undefined): void {
    const own = frame.id === undefined ? undefined : this.#own.get(frame.id);
    if (own !== undefined && frame.id !== undefined) {
      this.#own.delete(frame.id);
      return own(frame);
    }
    const id = known?.id ?? frame.id;
    const call = id === undefined ? undefined : this.#open.get(id);
    if (call !== undefined) {
      this.#open.delete(call.exchange.id);
      if (call.standing !== undefined && frame.kind === 'result') this.#session.succeeded(call.standing, frame);
      else if (call.standing !== undefined) this.#session.failed(call.standing);
    }
    this.#listener.fromServer(frame, known ?? call?.exchange);
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
    this.#failOpen(reason);
    if (this.#session.initialize === undefined) {
      this.#state = { kind: 'closed' };
      return this.#listener.serverClosed(reason);
    }
    if (wasReviving) return this.#notRevived(reason);
    // What was lost, and why, the connection has said.
    this.log.info(`reconnecting to ${this.#dialer.name}`);
    this.#pauseThenRevive();
  }

  #failOpen(reason: BridgeError): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { exchange, standing } of open) {
      if (standing !== undefined) this.#session.failed(standing);
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
    const cancel = this.#deps.clock.after(pauseMs, () => this.#revive());
    this.#state = { kind: 'pausing', cancel };
  }

  #revive(): void {
    if (this.#state.kind !== 'pausing') return;
    this.#state.cancel();
    try {
      const link = this.#dialer.dial(this);
      const restoration = new Restoration(this.#session, this);
      this.#state = { kind: 'reviving', link, cancel: () => restoration.cancel() };
      restoration.start();
    } catch (thrown) {
      this.#notRevived(toBridgeError(thrown));
    }
  }

  ask(method: string, params: object, answered: (answer: Frame) => void): void {
    const id = this.#deps.randomId();
    this.#own.set(id, answered);
    const exchange = new Exchange(id, method, NO_LANE, undefined, this.#deps.clock.now());
    this.#link()?.send(requestFrame(id, method, params), exchange);
  }

  tell(method: string, taken: () => void): void {
    this.#link()?.send(notificationFrame(method));
    taken();
  }

  /** Nobody could tell the client of another offer. */
  offered(): boolean {
    return true;
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

  /** Something may have changed while nobody could tell. */
  restored(missed: readonly Frame[]): void {
    if (this.#state.kind !== 'reviving') return;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#state = { kind: 'live', link: this.#state.link };
    this.log.info(`reconnected to ${this.#dialer.name}`);
    for (const notification of missed) this.#listener.fromServer(notification);
    let hasCapacity = true;
    for (const { frame, exchange } of this.#waiting.takeAll()) {
      const isOver = exchange !== undefined && exchange.state.kind !== 'open';
      hasCapacity = (isOver || this.send(frame, exchange)) && hasCapacity;
    }
    // The lost connection may have been full; it will never drain.
    if (hasCapacity) this.#listener.serverDrained();
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

/** A server that never answers would have everything wait for it, for as long as it keeps the connection. */
function timedOut(name: string, timeoutMs: number): BridgeError {
  const message = `${name} did not answer initialize within ${timeoutMs} ms when reconnected; raise --request-timeout if it needs longer.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
}
