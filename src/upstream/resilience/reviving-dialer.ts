import { ByteQueue, frameBytes } from '../../collections/byte-queue.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { changeNotifications } from '../../mcp/translate/change-notifications.ts';
import { CANCELLED, INITIALIZE, INITIALIZED, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { asFields, readField, readPayload, showText } from '../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { SubscribedUris, TOO_MANY_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { DecoratedDialer } from '../../relay/passing-link.ts';
import type { ServerFault, ServerListener, UpstreamDialer, UpstreamLink } from '../../relay/ports.ts';
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

/** What a new connection has to be told to be where the old one was. */
interface Standing {
  /** The client's `initialize`; undefined until the server has accepted it. */
  handshake: Frame | undefined;
  level: Frame | undefined;
  readonly subscriptions: SubscribedUris;
}

interface OpenCall {
  readonly exchange: Exchange;
  /** The message, where its success is worth remembering. */
  readonly standing: Frame | undefined;
}

class RevivingLink implements UpstreamLink, ServerListener {
  readonly #dialer: UpstreamDialer;
  readonly #listener: ServerListener;
  readonly #deps: Deps;
  readonly #handshakeTimeoutMs: number;
  readonly #standing: Standing = {
    handshake: undefined,
    level: undefined,
    subscriptions: new SubscribedUris(),
  };
  /** Requests without an answer, by the client's id. */
  readonly #open = new Map<JsonRpcId, OpenCall>();
  readonly #questions = new Set<JsonRpcId>();
  /** Requests of the client that are repeated to a new connection, under their old ids; it had its answers before. */
  readonly #repeated = new Map<JsonRpcId, (answer: Frame) => void>();
  readonly #waiting = new ByteQueue<Waiting>({ maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES }, frameBytes);
  #pauseMs = FIRST_PAUSE_MS;
  #state: LinkState;

  constructor(dialer: UpstreamDialer, listener: ServerListener, { deps, handshakeTimeoutMs }: RevivingOptions) {
    this.#dialer = dialer;
    this.#listener = listener;
    this.#deps = deps;
    this.#handshakeTimeoutMs = handshakeTimeoutMs;
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
      if (frame.method === SUBSCRIBE && !this.#standing.subscriptions.add(uriOf(frame))) {
        this.#listener.fromServer(errorFrame(exchange.id, rpcErrorOf(TOO_MANY_SUBSCRIBED)), exchange);
        return false;
      }
      this.#open.set(exchange.id, { exchange, standing: isStanding(exchange.method) ? frame : undefined });
    } else if (frame.method === CANCELLED && exchange !== undefined) this.#open.delete(exchange.id);
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
    this.#repeated.clear();
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
    const repeated = frame.id === undefined ? undefined : this.#repeated.get(frame.id);
    if (repeated !== undefined && frame.id !== undefined) {
      this.#repeated.delete(frame.id);
      return repeated(frame);
    }
    const id = known?.id ?? frame.id;
    const call = id === undefined ? undefined : this.#open.get(id);
    if (call !== undefined) {
      this.#open.delete(call.exchange.id);
      if (call.standing !== undefined) this.#remember(call.standing, frame.kind === 'result');
    }
    this.#listener.fromServer(frame, known ?? call?.exchange);
  }

  #remember(request: Frame, isAccepted: boolean): void {
    if (!isAccepted) {
      if (request.method === SUBSCRIBE) this.#standing.subscriptions.delete(uriOf(request));
    } else if (request.method === INITIALIZE) this.#standing.handshake = request;
    else if (request.method === SET_LEVEL) this.#standing.level = request;
    else if (request.method === UNSUBSCRIBE) this.#standing.subscriptions.delete(uriOf(request));
  }

  serverFault(fault: ServerFault): void {
    const repeated = fault.kind === 'request' || fault.id === undefined ? undefined : this.#repeated.get(fault.id);
    if (repeated === undefined) return this.#listener.serverFault(fault);
    const answer = errorFrame(fault.id, rpcErrorOf(fault.error));
    this.#answered(answer, undefined);
  }

  serverDrained(): void {
    this.#listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#state.kind === 'closed') return;
    const wasReviving = this.#state.kind === 'reviving';
    if (this.#state.kind === 'reviving') this.#state.cancel();
    this.#repeated.clear();
    this.#failOpen(reason);
    if (this.#standing.handshake === undefined) {
      this.#state = { kind: 'closed' };
      return this.#listener.serverClosed(reason);
    }
    if (wasReviving) return this.#notRevived(reason);
    // What was lost, and why, the connection has said.
    this.#deps.log.info(`reconnecting to ${this.#dialer.name}`);
    this.#pauseThenRevive();
  }

  #failOpen(reason: BridgeError): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { exchange, standing } of open) {
      if (standing !== undefined) this.#remember(standing, false);
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
    const { handshake } = this.#standing;
    if (this.#state.kind !== 'pausing' || handshake === undefined) return;
    this.#state.cancel();
    try {
      const link = this.#dialer.dial(this);
      this.#state = { kind: 'reviving', link, cancel: this.#limitHandshake(link) };
      this.#repeat(link, handshake, (answer) => this.#revived(link, answer));
    } catch (thrown) {
      this.#notRevived(toBridgeError(thrown));
    }
  }

  /** A server that never answers would have everything wait for it, for as long as it keeps the connection. */
  #limitHandshake(link: UpstreamLink): () => void {
    const timeoutMs = this.#handshakeTimeoutMs;
    if (timeoutMs === 0) return () => {};
    return this.#deps.clock.after(timeoutMs, () => {
      const message = `${this.#dialer.name} did not answer initialize within ${timeoutMs} ms when reconnected; raise --request-timeout if it needs longer.`;
      const data = { phase: 'initialize', timeoutMs };
      this.#giveUp(link, new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data }));
    });
  }

  #giveUp(link: UpstreamLink, reason: BridgeError): void {
    link.close(reason);
    this.serverClosed(reason);
  }

  /** Nobody but the log is told of a connection that could not be made, unless a message waits. */
  #notRevived(reason: BridgeError): void {
    this.#deps.log.warn({ code: reason.code }, `not reconnected: ${reason.message}`);
    this.#failWaiting(reason);
    this.#pauseThenRevive();
  }

  #revived(link: UpstreamLink, answer: Frame): void {
    const result = answer.kind === 'result' ? readPayload(answer) : undefined;
    if (result === undefined) {
      const message = `${this.#dialer.name} refused initialize when reconnected.`;
      return this.#giveUp(link, new BridgeError('ERR_UPSTREAM_PROTOCOL', message));
    }
    if (this.#state.kind === 'reviving') this.#state.cancel();
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#state = { kind: 'live', link };
    link.send(notificationFrame(INITIALIZED));
    const { level, subscriptions } = this.#standing;
    if (level !== undefined) this.#repeat(link, level, () => {});
    for (const uri of subscriptions) {
      this.#repeat(link, requestFrame(this.#deps.randomId(), SUBSCRIBE, { uri }), () => {});
    }
    this.#deps.log.info(`reconnected to ${this.#dialer.name}`);
    // Something may have changed while nobody could tell.
    for (const notification of changeNotifications(asFields(result.capabilities), [...subscriptions])) {
      this.#listener.fromServer(notification);
    }
    let hasCapacity = true;
    for (const { frame, exchange } of this.#waiting.takeAll()) {
      const isOver = exchange !== undefined && exchange.state.kind !== 'open';
      hasCapacity = (isOver || this.send(frame, exchange)) && hasCapacity;
    }
    // The lost connection may have been full; it will never drain.
    if (hasCapacity) this.#listener.serverDrained();
  }

  #repeat(link: UpstreamLink, request: Frame, answered: (answer: Frame) => void): void {
    if (request.id !== undefined) this.#repeated.set(request.id, answered);
    link.send(request);
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

/** Requests whose success a new connection has to repeat. */
function isStanding(method: string): boolean {
  return method === INITIALIZE || method === SET_LEVEL || method === SUBSCRIBE || method === UNSUBSCRIBE;
}

function uriOf(request: Frame): string {
  return showText(readField(request, 'uri'));
}
