import type { Deps } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import type { Call } from '../../../relay/call.ts';
import type { LinkOwner, SessionDialer, UpstreamLink } from '../../../relay/ports.ts';
import { SessionState } from '../../../relay/sessions/session-state.ts';
import { ABANDONED_MS, type ClientIdentity } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { LegacyClient } from '../../../relay/shared/legacy/legacy-client.ts';
import { LegacyEra } from '../../../relay/shared/legacy/legacy-era.ts';
import { LegacyState } from '../../../relay/shared/legacy/legacy-state.ts';
import { SharedServer } from '../../../relay/shared/shared-server.ts';
import type { JsonRpcId } from '../../../wire/frame.ts';
import type { RootsQuestions } from '../questions/roots-questions.ts';
import type { Elicitations } from '../questions/url-elicitations.ts';
import { CallProgress, type Continuation } from '../questions/waiting-call.ts';
import type { SessionWanted } from './session-wanted.ts';
import { type Attribution, SoleOwner } from './sole-owner.ts';

/** A server that is not back by then is not waited for any longer by those who only listen. */
export const RECONNECT_MS = 60_000;

export interface LegacySessionOptions {
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  readonly handshakeTimeoutMs: number;
  readonly attribution: Attribution;
  /** The client that the server is told it talks to. */
  readonly wanted: SessionWanted;
  readonly calls: CallsElsewhere;
  /** Called when the server's transport has turned out not to tell which call the server asks in. */
  readonly onUnplaced: () => void;
  /** Called when fewer calls are abandoned than before. */
  readonly onAbandonedLess: () => void;
}

/**
 * States whether calls that wait for their clients go on at another bridge when this one is gone. They are `stored` if
 * there are other bridges and the server may be one that remembers its calls.
 */
export type CallsElsewhere = 'stored' | 'lost';

/** The state of one connection to the server, as far as another bridge needs it. */
interface Progress {
  readonly session: SessionState;
  readonly calls: CallProgress;
}

/**
 * A session of a legacy server that serves the calls of one client, all with the same capabilities. The server
 * therefore knows exactly who calls and what the client can be asked.
 */
export class LegacySession {
  readonly wanted: SessionWanted;
  /** Counts the users that may be asked something; users that cannot be asked share the session with them. */
  askableUsers = 0;
  readonly roots: RootsQuestions;
  readonly elicitations: Elicitations;
  /**
   * The requests for the results of tasks, by the server's ids of the tasks. They are set and removed by whatever makes
   * them.
   */
  readonly tasks: Map<JsonRpcId, Call>;
  readonly #options: LegacySessionOptions;
  readonly #state: LegacyState;
  readonly #owner: SoleOwner;
  /** The server, whose clients are the users of the session. */
  readonly server: SharedServer<LegacyClient>;
  /** The state of the latest connection; undefined: its calls do not go on elsewhere. */
  #progress: Progress | undefined;
  #isHandedOver = false;
  #stopWaiting: (() => void) | undefined;
  /** Time at which the last user left. */
  #idleSinceMs = Number.POSITIVE_INFINITY;
  /** Set while it is looked whether the session has been idle for too long. Users come and go without changing that. */
  #cancelLook: (() => void) | undefined;

  constructor(options: LegacySessionOptions) {
    const { dialer, deps, handshakeTimeoutMs, attribution, wanted, onUnplaced, onAbandonedLess } = options;
    this.#options = options;
    this.wanted = wanted;
    // All have one process then, so that nobody can leave it for another.
    const abandonedForMs = attribution === 'none' ? ABANDONED_MS : Number.POSITIVE_INFINITY;
    this.#state = new LegacyState(deps.clock, abandonedForMs);
    this.#owner = new SoleOwner(this.#state, {
      clock: deps.clock,
      attribution,
      headers: wanted.headers,
      capabilities: wanted.capabilities.capabilities,
      onUnplaced,
      onAbandonedLess,
      onServed: () => this.#served(),
      onLost: () => this.#lost(),
    });
    this.roots = this.#owner.roots;
    this.elicitations = this.#owner.elicitations;
    this.tasks = this.#owner.tasks;
    const era = new LegacyEra(this.#state, this.#owner, { deps, handshakeTimeoutMs, clientInfo: wanted.clientInfo });
    const dial = (owner: LinkOwner): UpstreamLink => dialer.dial(owner, this.#beginProgress());
    this.server = new SharedServer(era, { dialer: borrowed(dialer, dial), deps, prewarm: false });
  }

  /** True while the session has no user. */
  get isIdle(): boolean {
    return this.#state.clients.isEmpty;
  }

  /** Called when the last user has left. Calls `end` when no user has come for so long. */
  endAfter(idleMs: number, end: () => void): void {
    this.#idleSinceMs = this.#options.deps.clock.now();
    if (this.#cancelLook === undefined) this.#lookAfter(idleMs, idleMs, end);
  }

  #lookAfter(delayMs: number, idleMs: number, end: () => void): void {
    const { clock } = this.#options.deps;
    this.#cancelLook = clock.after(delayMs, () => {
      this.#cancelLook = undefined;
      if (!this.isIdle) return;
      const leftMs = this.#idleSinceMs + idleMs - clock.now();
      if (leftMs > 0) this.#lookAfter(leftMs, idleMs, end);
      else end();
    });
  }

  get toolsVersion(): number {
    return this.#owner.toolsVersion;
  }

  /** The server's answer to `initialize`; undefined while no server serves. */
  get initializeResult(): InitializeResult | undefined {
    return this.#state.offer;
  }

  /** True if nothing that the server asks there can be meant for a call that another client has abandoned. */
  isClearFor(client: ClientIdentity): boolean {
    return this.#state.abandoned.areAskersOf(client);
  }

  #beginProgress(): SessionState | undefined {
    if (this.#options.calls === 'lost') return undefined;
    const session = new SessionState();
    const calls = new CallProgress();
    session.positions = calls;
    this.#progress = { session, calls };
    return session;
  }

  /** Returns what another bridge needs to wait for the answer to this request. */
  continuationOf({ upstreamId }: Call): Continuation | undefined {
    const progress = this.#progress;
    const resumable = progress?.calls.find(upstreamId);
    const server = this.initializeResult;
    if (progress === undefined || resumable === undefined || server === undefined) return undefined;
    const { questions } = this.#state;
    return { session: progress.session, resumable, server, serverIdOf: ({ id }) => questions.serverIdOf(id) };
  }

  /** Leaves the calls of the session to other bridges. The session does not end at the server with this bridge. */
  handOver(): void {
    this.#isHandedOver = true;
    if (this.#progress !== undefined) this.#progress.session.isHandedOver = true;
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /**
   * Called when a call that could be asked something is over. A question that comes from now on was not caused by the
   * handshake.
   */
  callOver(): void {
    this.#owner.roots.callOver();
  }

  #served(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }

  #lost(): void {
    this.#stopWaiting ??= this.#options.deps.clock.after(RECONNECT_MS, () => this.#dismiss());
  }

  #dismiss(): void {
    this.#stopWaiting = undefined;
    const reason = `${this.server.name} ended and could not be started again within ${RECONNECT_MS} ms.`;
    for (const { listener } of this.#state.clients.toArray())
      listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
  }

  close(): Promise<void> {
    this.#stopWaiting?.();
    this.#cancelLook?.();
    return this.server.close();
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
