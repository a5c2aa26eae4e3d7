import { LinkedList, ListMember } from '../../../collections/short-lived-values.ts';
import type { Clock, Deps } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { type LogLevel, severityOf } from '../../../mcp/vocabulary/client-declarations.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { SET_LEVEL } from '../../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { Exchange, type Lane } from '../../../relay/exchange.ts';
import type { ServerListener, ServerProcess, SessionDialer, UpstreamLink } from '../../../relay/ports.ts';
import { SessionState } from '../../../relay/sessions/session-state.ts';
import { ABANDONED_MS } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { LegacyClient } from '../../../relay/shared/legacy/legacy-client.ts';
import { LegacyEra } from '../../../relay/shared/legacy/legacy-era.ts';
import { LegacyState } from '../../../relay/shared/legacy/legacy-state.ts';
import { SharedServer } from '../../../relay/shared/shared-server.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import type { RootsQuestions } from '../questions/roots-questions.ts';
import type { Elicitations } from '../questions/url-elicitations.ts';
import { CallProgress, type Continuation } from '../questions/waiting-call.ts';
import { clientOf } from './session-wanted.ts';
import { type Attribution, SoleOwner } from './sole-owner.ts';

/** A server that is not back by then is not waited for any longer by those who only listen. */
export const RECONNECT_MS = 60_000;

export interface LegacySessionOptions {
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  readonly handshakeTimeoutMs: number;
  readonly attribution: Attribution;
  /** The server is told that it talks to this client. */
  readonly clientInfo: Implementation;
  /** Headers of the caller's HTTP request that the user lets pass; see `Lane`. */
  readonly headers: Lane['headers'];
  readonly capabilities: Fields;
  readonly calls: CallsElsewhere;
  /** Nobody uses the session any more. */
  readonly onIdle: (session: LegacySession) => void;
  /** Nothing tells the call that the server asks in. */
  readonly onUnplaced: () => void;
  /** An abandoned call, or all of them, is none any more. */
  readonly onAbandonedLess: () => void;
}

/**
 * Whether calls that wait for their clients go on at another bridge when this one is gone: `stored` where there are others, and
 * the server may be one that remembers its calls.
 */
export type CallsElsewhere = 'stored' | 'lost';

/** What is known of one connection to the server. */
interface Progress {
  readonly session: SessionState;
  readonly calls: CallProgress;
}

/**
 * One session of a legacy server that serves one client's calls, all with the same capabilities: the server knows
 * exactly who calls and what can be asked.
 */
export class LegacySession {
  readonly roots: RootsQuestions;
  readonly elicitations: Elicitations;
  /** The calls that run as tasks of the server, by its ids; kept by who makes them. */
  readonly tasks: Map<JsonRpcId, Exchange>;
  readonly #options: LegacySessionOptions;
  readonly #state: LegacyState;
  readonly #owner: SoleOwner;
  readonly #server: SharedServer<LegacyClient>;
  readonly #links = new LinkedList<UsersLink>();
  readonly #levelHold: LevelHold;
  /** What is known of the connection that was made last; undefined: nobody goes on with its calls. */
  #progress: Progress | undefined;
  #isHandedOver = false;
  #users = 0;
  #stopWaiting: (() => void) | undefined;
  #isClosed = false;

  constructor(options: LegacySessionOptions) {
    const { dialer, deps, attribution, headers, capabilities, onUnplaced, onAbandonedLess } = options;
    this.#options = options;
    // All have one process then, so that nobody can leave it for another.
    const abandonedForMs = attribution === 'none' ? ABANDONED_MS : Number.POSITIVE_INFINITY;
    this.#state = new LegacyState(deps.clock, abandonedForMs);
    this.#owner = new SoleOwner(this.#state, {
      clock: deps.clock,
      attribution,
      headers,
      capabilities,
      onUnplaced,
      onAbandonedLess,
      onServed: () => this.#served(),
      onLost: () => this.#lost(),
    });
    this.roots = this.#owner.roots;
    this.elicitations = this.#owner.elicitations;
    this.tasks = this.#owner.tasks;
    const era = new LegacyEra(this.#state, this.#owner, options);
    const dial = (listener: ServerListener): UpstreamLink => dialer.dial(listener, this.#beginProgress());
    this.#server = new SharedServer(era, { dialer: borrowed(dialer, dial), deps, prewarm: false });
    this.#levelHold = new LevelHold({ clock: deps.clock, dial: (listener) => this.#server.dial(listener) });
  }

  get users(): number {
    return this.#users;
  }

  get toolsVersion(): number {
    return this.#owner.toolsVersion;
  }

  /** What the server said of itself; undefined while none serves. */
  get initializeResult(): InitializeResult | undefined {
    return this.#state.offer;
  }

  /** `left` is called once the link is closed. Throws a BridgeError when the server cannot be reached now. */
  take(listener: ServerListener, left?: () => void): UpstreamLink {
    const link = this.#server.dial(listener);
    this.#users += 1;
    const usersLink = new UsersLink(link, listener, () => {
      this.#users -= 1;
      left?.();
      if (this.#users === 0 && !this.#isClosed) this.#options.onIdle(this);
    });
    this.#links.add(usersLink);
    return usersLink;
  }

  /** True if nothing that the server asks there can be meant for a call that was abandoned by another client than this listener's. */
  isClearFor(listener: ServerListener): boolean {
    return this.#owner.isClearFor(clientOf(listener));
  }

  /** A request that wanted this level leaves; others may follow. */
  holdLevel(level: LogLevel): void {
    if (this.initializeResult !== undefined) this.#levelHold.hold(level);
  }

  #beginProgress(): SessionState | undefined {
    if (this.#options.calls === 'lost') return undefined;
    const session = new SessionState();
    const calls = new CallProgress();
    session.positions = calls;
    this.#progress = { session, calls };
    return session;
  }

  /** What another bridge needs to wait for the answer to the call of this exchange. */
  continuationOf({ upstreamId }: Exchange): Continuation | undefined {
    const progress = this.#progress;
    const call = progress?.calls.find(upstreamId);
    const server = this.initializeResult;
    if (progress === undefined || call === undefined || server === undefined) return undefined;
    const { questions } = this.#state;
    return { session: progress.session, call, server, serverIdOf: ({ id }) => questions.serverIdOf(id) };
  }

  /** Other bridges go on with calls of the session: to the server it does not end here. */
  handOver(): void {
    this.#isHandedOver = true;
    if (this.#progress !== undefined) this.#progress.session.isHandedOver = true;
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /** A call that could be asked something is over: what is asked from now on belongs to no handshake any more. */
  callOver(): void {
    this.#owner.roots.callOver();
  }

  #served(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }

  #lost(): void {
    this.#levelHold.close();
    this.#stopWaiting ??= this.#options.deps.clock.after(RECONNECT_MS, () => this.#dismiss());
  }

  #dismiss(): void {
    this.#stopWaiting = undefined;
    const reason = `${this.#server.name} ended and could not be started again within ${RECONNECT_MS} ms.`;
    for (const { listener } of this.#links.toArray())
      listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWaiting?.();
    this.#levelHold.close();
    return this.#server.close();
  }
}

/** The link of one user of a session, which counts as one until it is closed. */
class UsersLink extends ListMember implements UpstreamLink {
  readonly listener: ServerListener;
  readonly #link: UpstreamLink;
  readonly #left: () => void;

  constructor(link: UpstreamLink, listener: ServerListener, left: () => void) {
    super();
    this.listener = listener;
    this.#link = link;
    this.#left = left;
  }

  get process(): ServerProcess | undefined {
    return this.#link.process;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#link.send(frame, exchange);
  }

  pause(): void {
    this.#link.pause();
  }

  resume(): void {
    this.#link.resume();
  }

  close(reason: BridgeError): void {
    this.#link.close(reason);
    if (this.unlink()) this.#left();
  }
}

/** Several sessions use one dialer; it ends with the pool, not with one of them. */
function borrowed(dialer: SessionDialer, dial: SessionDialer['dial']): SessionDialer {
  return {
    name: dialer.name,
    dial,
    readiness: () => dialer.readiness(),
    close: () => Promise.resolve(),
    killNow: () => {},
  };
}

/** Requests come in quick succession; a server is not told of each that it may be quieter again. */
export const LEVEL_HOLD_MS = 5000;
/** The quietest level there is; none turns log messages off. */
const QUIETEST: LogLevel = 'emergency';

export interface LevelHoldOptions {
  readonly clock: Clock;
  /** Opens a link to the server whose level is held. */
  readonly dial: (listener: ServerListener) => UpstreamLink;
}

/**
 * - `idle`: the level is what the clients want.
 * - `holding`: it stays what it was for those that have left.
 * - `releasing`: the server is told that they are gone.
 */
type HoldState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'holding'; readonly link: UpstreamLink; readonly level: LogLevel; readonly cancel: () => void }
  | { readonly kind: 'releasing'; readonly link: UpstreamLink; readonly exchange: Exchange };

const IDLE: HoldState = { kind: 'idle' };

/** Keeps the log level of a session's server for a moment after the last request that wanted it. */
export class LevelHold implements ServerListener {
  readonly #options: LevelHoldOptions;
  #state: HoldState = IDLE;

  constructor(options: LevelHoldOptions) {
    this.#options = options;
  }

  /** One that wanted this level leaves. */
  hold(level: LogLevel): void {
    const state = this.#state;
    const link = state.kind === 'idle' ? this.#options.dial(this) : state.link;
    const held = state.kind === 'holding' && severityOf(state.level) <= severityOf(level) ? state.level : level;
    if (state.kind === 'holding') state.cancel();
    const cancel = this.#options.clock.after(LEVEL_HOLD_MS, () => this.#release(link));
    this.#state = { kind: 'holding', link, level: held, cancel };
    if (state.kind !== 'holding' || state.level !== held) link.send(levelRequest(held), this.#exchange());
  }

  #release(link: UpstreamLink): void {
    const exchange = this.#exchange();
    this.#state = { kind: 'releasing', link, exchange };
    link.send(levelRequest(QUIETEST), exchange);
  }

  #exchange(): Exchange {
    return new Exchange('level', SET_LEVEL, { isOpen: true }, undefined, this.#options.clock.now());
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (this.#state.kind === 'releasing' && frame.isResponse && exchange === this.#state.exchange) this.close();
  }

  serverFault(): void {
    this.close();
  }

  serverDrained(): void {}

  serverClosed(_reason: BridgeError): void {
    this.close();
  }

  close(): void {
    const state = this.#state;
    this.#state = IDLE;
    if (state.kind === 'holding') state.cancel();
    if (state.kind !== 'idle') state.link.close(RELEASED);
  }
}

function levelRequest(level: LogLevel): Frame {
  return requestFrame('level', SET_LEVEL, { level });
}

const RELEASED = new BridgeError('ERR_SESSION_CLOSED', 'No client uses this log level any more.');
