import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { INITIALIZED } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { TOO_MANY_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';
import { Call, type ClientMessage, type Lane } from '../call.ts';
import type { LinkOwner, RestorePolicy, ServerFault, SessionDialer, UpstreamLink } from '../ports.ts';
import { Restoration, type RestoredConnection, type TimeLimit } from './restore-session.ts';
import { isStanding, type SessionState } from './session-state.ts';

/** Pause before a lost connection is opened again. It is doubled after each failure, up to the maximum. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Messages that may wait while there is no connection. */
const MAX_WAITING = 1024;
export const MAX_WAITING_BYTES = 8 * 1024 * 1024;

export interface SessionRestorerOptions {
  readonly deps: Pick<Deps, 'clock' | 'log' | 'randomId'>;
  readonly policy: RestorePolicy;
  /** The state of the session, which is kept up to date here unless the link does so. */
  readonly state: SessionState;
  /** Opens each further connection. */
  readonly dialer: Pick<SessionDialer, 'name' | 'dial'>;
  /** The session's relay. It listens to the link while that is connected, and to the restorer in between. */
  readonly owner: LinkOwner;
}

/**
 * - `idle`: the session is connected, or has not begun. Messages do not pass through the restorer.
 * - `pausing`: there is no connection. The next message or the timer opens one.
 * - `awaiting`: there is no connection. The client's next request opens one.
 * - `restoring`: the session is being restored on a new connection. Messages wait.
 * - `settling`: the session goes on there, and some of its state is still being restored.
 * - `closed`: the session has ended.
 */
type RestorerState =
  | { readonly kind: 'idle' | 'awaiting' | 'closed' }
  | { readonly kind: 'pausing'; readonly cancel: () => void }
  | { readonly kind: 'restoring'; readonly link: UpstreamLink; readonly cancel: () => void }
  | { readonly kind: 'settling'; readonly link: UpstreamLink };

/**
 * A request of the bridge that restores the session's state on a new connection. The client had its answer long ago.
 */
interface OwnRequest {
  readonly call: Call;
  readonly answered: (answer: Frame) => void;
}

/**
 * Keeps the state of a session, and restores it on a new connection: the handshake, the log level and the
 * subscriptions. Meanwhile it takes the place of the session's link, and then hands over the new one.
 */
export class SessionRestorer implements UpstreamLink, LinkOwner, RestoredConnection {
  readonly delivery = 'pipe';
  readonly process = undefined;
  readonly timeLimit: TimeLimit;
  readonly log: Logger;
  readonly listener: LinkOwner;
  readonly #options: SessionRestorerOptions;
  /** Unanswered requests whose success changes the state of the session. */
  readonly #standing = new Map<Call, Frame>();
  readonly #own = new Map<JsonRpcId, OwnRequest>();
  readonly #waiting = new ByteQueue<ClientMessage>({ maxItems: MAX_WAITING, maxBytes: MAX_WAITING_BYTES }, frameBytes);
  /**
   * Notifications of possible changes. The client gets them when the server has answered everything that restores the
   * session, because the server reports later changes itself.
   */
  #missed: readonly Frame[] = [];
  /** Forwarded headers of the client's latest request. */
  #headers: Lane['headers'];
  #pauseMs = FIRST_PAUSE_MS;
  #isPaused = false;
  #state: RestorerState = { kind: 'idle' };

  constructor(options: SessionRestorerOptions) {
    const { deps, policy, dialer, owner } = options;
    this.#options = options;
    this.log = deps.log;
    this.listener = owner;
    const { handshakeTimeoutMs: timeoutMs } = policy;
    this.timeLimit = { clock: deps.clock, timeoutMs, exceeded: () => timedOut(dialer.name, timeoutMs) };
  }

  // ---- the state of the session

  /** Called with each message for the server. Returns the answer to a subscription beyond the limit. */
  sending(frame: Frame, call: Call | undefined): Frame | undefined {
    const { kind } = this.#state;
    return kind === 'idle' || kind === 'settling' ? this.#note(frame, call) : undefined;
  }

  #note(frame: Frame, call: Call | undefined): Frame | undefined {
    const { state } = this.#options;
    if (state.continuation === 'same-session') return undefined;
    if (frame.method === INITIALIZED) state.isInitialized = true;
    if (frame.kind !== 'request' || call === undefined || !isStanding(call.method)) return undefined;
    if (!state.reserve(frame)) return errorFrame(call.id, rpcErrorOf(TOO_MANY_SUBSCRIBED));
    this.#standing.set(call, frame);
    return undefined;
  }

  /** Called with the server's answer to a call. */
  answered(call: Call, answer: Frame): void {
    const request = this.#standing.get(call);
    if (request === undefined || answer.kind !== 'result') return;
    this.#standing.delete(call);
    const { state } = this.#options;
    if (state.continuation === 'new-session') state.succeeded(request, answer);
  }

  /** Called when a call has ended in any way. */
  ended(call: Call): void {
    const request = this.#standing.get(call);
    if (request === undefined) return;
    this.#standing.delete(call);
    this.#options.state.failed(request);
  }

  // ---- the beginning of a restoration

  /** Continues a session that has begun elsewhere. Returns the link for the time until it is restored. */
  begin(): UpstreamLink {
    const { policy } = this.#options;
    if (policy.afterLoss === 'ends' && policy.begins === 'with-a-request') {
      this.#state = { kind: 'awaiting' };
      return this;
    }
    // No message may reach the owner before it has joined this link.
    queueMicrotask(() => this.#restore());
    this.#state = { kind: 'pausing', cancel: () => {} };
    return this;
  }

  /**
   * Called when the connection is lost. Returns the link for the time until the session is restored on another one, or
   * undefined if the session ends with its connection.
   */
  lost(): UpstreamLink | undefined {
    if (this.#state.kind === 'pausing') return this;
    const { state, policy, dialer } = this.#options;
    // Before the handshake has succeeded a loss is final, because the client can simply try again.
    if (this.#state.kind === 'closed' || state.initialize === undefined || policy.afterLoss === 'ends')
      return undefined;
    // The loss and its reason were logged by the connection.
    this.log.info(`reconnecting to ${dialer.name}`);
    this.#isPaused = false;
    this.#pauseThenRestore();
    return this;
  }

  #pauseThenRestore(): void {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2);
    const cancel = this.#options.deps.clock.after(pauseMs, () => this.#restore());
    this.#state = { kind: 'pausing', cancel };
  }

  #restore(): void {
    if (this.#state.kind === 'pausing') this.#state.cancel();
    else if (this.#state.kind !== 'awaiting') return;
    try {
      const link = this.#options.dialer.dial(this);
      const restoration = new Restoration(this.#options.state, this);
      this.#state = { kind: 'restoring', link, cancel: () => restoration.cancel() };
      restoration.start();
    } catch (thrown) {
      this.#notRestored(toBridgeError(thrown));
    }
  }

  // ---- from the client, while the session is being restored

  send(frame: Frame, call?: Call): boolean {
    const isOfClient = call?.lane.isOpen === true && frame.kind === 'request';
    if (isOfClient) this.#headers = call.lane.headers;
    switch (this.#state.kind) {
      case 'settling':
        return this.#state.link.send(frame, call);
      case 'restoring':
        // A question that this answers was asked on the new connection.
        if (frame.isResponse) return this.#state.link.send(frame, call);
        return this.#wait(frame, call);
      case 'pausing':
        this.#wait(frame, call);
        this.#restore();
        return true;
      case 'awaiting':
        this.#wait(frame, call);
        if (isOfClient) this.#restore();
        return true;
      case 'idle':
      case 'closed':
        return true;
    }
  }

  #wait(frame: Frame, call: Call | undefined): true {
    if (!this.#waiting.isFull) this.#waiting.add({ frame, call });
    else if (call?.state.kind === 'open') {
      const { name } = this.#options.dialer;
      const error = new BridgeError('ERR_UPSTREAM_STARTING', `${name} is being reconnected; try again.`);
      this.listener.fromServer(errorFrame(call.id, rpcErrorOf(error)), call);
    }
    return true;
  }

  pause(): void {
    this.#isPaused = true;
    // Until the session is restored, the answers to its handshake have to be read.
    if (this.#state.kind === 'settling') this.#state.link.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state.kind === 'settling') this.#state.link.resume();
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    if (state.kind === 'pausing' || state.kind === 'restoring') state.cancel();
    this.#state = { kind: 'closed' };
    this.#waiting.takeAll();
    this.#own.clear();
    if (state.kind === 'restoring' || state.kind === 'settling') state.link.close(reason);
  }

  // ---- from the server, until the session is restored

  serverFound(link: UpstreamLink): void {
    if (this.#state.kind === 'restoring' || this.#state.kind === 'settling') this.#state = { ...this.#state, link };
  }

  fromServer(frame: Frame, call?: Call): void {
    const id = call?.id ?? frame.id;
    const own = id === undefined ? undefined : this.#own.get(id);
    if (frame.isResponse && own !== undefined) return this.#answered(own, frame);
    this.listener.fromServer(frame, own !== undefined && own.call === call ? undefined : call);
  }

  #answered(own: OwnRequest, answer: Frame): void {
    this.#own.delete(own.call.id);
    own.answered(answer);
    this.#settle();
  }

  serverFault(fault: ServerFault): void {
    const isAnswer = fault.kind !== 'request' && fault.id !== undefined;
    const own = isAnswer ? this.#own.get(fault.id) : undefined;
    if (own === undefined) this.listener.serverFault(fault);
    else this.#answered(own, errorFrame(fault.id, rpcErrorOf(fault.error)));
  }

  serverDrained(): void {
    this.listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    const { kind } = this.#state;
    if (kind === 'restoring') this.#notRestored(reason);
    else if (kind === 'settling') this.listener.serverClosed(reason);
  }

  /** The owner answers the calls that wait, and goes on with this link. */
  #notRestored(reason: BridgeError): void {
    if (this.#state.kind === 'restoring') this.#state.cancel();
    this.log.warn({ code: reason.code }, `not reconnected: ${reason.message}`);
    this.#own.clear();
    this.#missed = [];
    this.#waiting.takeAll();
    this.#pauseThenRestore();
    this.listener.serverClosed(reason);
    this.listener.serverDrained();
  }

  // ---- for the restoration

  ask(method: string, params: object, answered: (answer: Frame) => void): void {
    const { clock, randomId } = this.#options.deps;
    const id = randomId();
    const lane = { isOpen: true, headers: this.#headers };
    const call = new Call(id, method, lane, undefined, clock.now());
    this.#own.set(id, { call, answered });
    this.#link?.send(requestFrame(id, method, params), call);
  }

  tell(method: string, taken: () => void): void {
    this.#link?.send(notificationFrame(method));
    taken();
  }

  get #link(): UpstreamLink | undefined {
    return this.#state.kind === 'restoring' || this.#state.kind === 'settling' ? this.#state.link : undefined;
  }

  /** A client that cannot be notified of another revision continues nevertheless. */
  offered({ protocolVersion }: Fields): boolean {
    const { state, policy } = this.#options;
    if (policy.afterLoss === 'goes-on' || protocolVersion === state.offer?.protocolVersion) return true;
    this.close(OTHER_REVISION);
    this.listener.serverClosed(OTHER_REVISION);
    return false;
  }

  refusal(): BridgeError {
    const { name } = this.#options.dialer;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${name} refused initialize when reconnected.`);
  }

  failed(reason: BridgeError): void {
    this.#link?.close(reason);
    this.#notRestored(reason);
  }

  restored(missed: readonly Frame[]): void {
    if (this.#state.kind !== 'restoring') return;
    const { link } = this.#state;
    this.#state = { kind: 'settling', link };
    this.#pauseMs = FIRST_PAUSE_MS;
    if (this.#isPaused) link.pause();
    this.log.info(`reconnected to ${this.#options.dialer.name}`);
    this.#missed = missed;
    if (this.#own.size === 0) this.#tellMissed();
    this.#sendWaiting(link);
    this.#settle();
  }

  #sendWaiting(link: UpstreamLink): void {
    let hasCapacity = true;
    for (const { frame, call } of this.#waiting.takeAll()) {
      const isOver = call !== undefined && call.state.kind !== 'open';
      if (isOver) continue;
      const refused = this.#note(frame, call);
      if (refused !== undefined) this.listener.fromServer(refused, call);
      else hasCapacity = link.send(frame, call) && hasCapacity;
    }
    // The lost connection may have been full, and will never drain.
    if (hasCapacity) this.listener.serverDrained();
  }

  #tellMissed(): void {
    const missed = this.#missed;
    this.#missed = [];
    for (const notification of missed) this.listener.fromServer(notification);
  }

  /** Hands the new connection over once everything that restores the session has been answered. */
  #settle(): void {
    if (this.#state.kind !== 'settling' || this.#own.size > 0) return;
    this.#tellMissed();
    if (this.#state.kind !== 'settling') return;
    const { link } = this.#state;
    this.#state = { kind: 'idle' };
    link.listener = this.listener;
    this.listener.serverFound(link);
    // A new listener starts unpaused.
    if (this.#isPaused) link.pause();
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
