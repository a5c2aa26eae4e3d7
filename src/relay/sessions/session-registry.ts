import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { ERAS, servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { type Calls, type CallTimes, drained, shortestOf, sweepPeriodOf } from '../calls.ts';
import type { ClientOrigin, Transport } from '../observer.ts';
import type {
  CallContext,
  CallerDialers,
  CallerEnvironment,
  ClientListener,
  DownstreamPeer,
  LinkOwner,
  UpstreamLink,
} from '../ports.ts';
import { Relay } from '../relay.ts';
import type { WiderLimits, WiderRefusal } from '../shared-state.ts';
import { EvictionLog, findAbandoned } from './abandoned-sessions.ts';
import { type Session, SessionEntry } from './session-entry.ts';
import { SessionRestorer } from './session-restorer.ts';
import { SessionState } from './session-state.ts';
import type { ReplayLog, SessionStorage } from './session-storage.ts';

export interface SessionRegistryOptions extends CallTimes {
  readonly dialers: CallerDialers;
  readonly deps: Deps;
  readonly maxSessions: number;
  /** Sessions of one caller. Default: as many as all callers together. */
  readonly maxCallerSessions?: number;
  /** Limits on the total of several bridges. Undefined if this bridge is the only one. */
  readonly widerLimits?: WiderLimits | undefined;
  /** Calls that one session may have open. Default: the relay's. */
  readonly maxSessionInFlight?: number;
  /** Begins and ends the calls of all sessions, and the modern calls of the bridge. */
  readonly calls: Calls;
  /**
   * A session ends after this time in which its client was not connected and sent nothing, even if it has open calls.
   */
  readonly sessionTimeoutMs: number;
  /** Shorter times after which an unused session ends. Default: none. */
  readonly idleTimeouts?: IdleTimeouts;
  /** Storage for sessions over Streamable HTTP, for other bridges. Undefined if sessions are not stored. */
  readonly storage?: SessionStorage | undefined;
}

/** Lifetime of a session whose client is not connected and has no open call. */
export interface IdleTimeouts {
  /**
   * For a client that has left: it has closed its stream and asked nothing since, or never returned after `initialize`.
   */
  readonly leftMs: number;
  /** For a client that calls without opening a stream, so that a missing stream says nothing about it. */
  readonly quietMs: number;
}

/** The client that a session is opened for, or all modern requests of a client on a pipe. */
export type SessionClient = {
  readonly transport: Transport;
  /** The caller that the session's id lets back in. Undefined for a client on a pipe, which never has to come back. */
  readonly principal: string | undefined;
  /** Variables that describe the caller to the server's process. Undefined if it gets none. */
  readonly environment: CallerEnvironment | undefined;
} & ({ readonly era: 'legacy' } | { readonly era: 'modern'; readonly context: CallContext });

/** A session that was opened on another bridge. */
export interface StoredSession {
  readonly id: string;
  readonly state: SessionState;
  readonly client: SessionClient & { readonly era: 'legacy' };
}

interface NewSession {
  readonly id: string;
  readonly state: SessionState | undefined;
  readonly client: SessionClient;
  readonly origin: ClientOrigin;
}

/** All sessions of the bridge, over any transport. */
export class SessionRegistry {
  readonly #options: SessionRegistryOptions;
  readonly #entries = new Map<string, SessionEntry>();
  readonly #perPrincipal = new Map<string | undefined, number>();
  readonly #evictions: EvictionLog;
  #stopSweep: (() => void) | undefined;
  #isDraining = false;

  constructor(options: SessionRegistryOptions) {
    this.#options = options;
    this.#evictions = new EvictionLog(options.deps);
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Opens a session. Throws a BridgeError if a limit is reached or the server cannot be reached. A client with a
   * context is one on a pipe: its modern requests are no session to the client, but they are limited, drained and
   * closed like one.
   */
  open<Peer extends DownstreamPeer>(
    createPeer: (id: string, listener: ClientListener) => Peer,
    client: SessionClient,
  ): Session<Peer> {
    const { transport, principal, era } = client;
    const origin = { transport, principal, server: this.#options.calls.server };
    try {
      this.#checkLimits(principal);
      const id = this.#options.deps.randomId();
      const isStored = transport === 'streamable-http' && ERAS[era].begins === 'initialize' && principal !== undefined;
      const state = isStored ? this.#options.storage?.begin(id, principal) : undefined;
      return this.#open({ id, state, client, origin }, createPeer);
    } catch (thrown) {
      this.#options.calls.observer?.refused(origin, toBridgeError(thrown).code);
      throw thrown;
    }
  }

  /** Continues a session of another bridge from its stored state. Throws what `open` throws. */
  restore<Peer extends DownstreamPeer>(
    { id, state, client }: StoredSession,
    createPeer: (id: string, listener: ClientListener) => Peer,
  ): Session<Peer> {
    this.#checkLimits(client.principal);
    const { transport, principal } = client;
    const origin = { transport, principal, server: this.#options.calls.server };
    const session = this.#open({ id, state, client, origin }, createPeer);
    session.relay.resume(servedRevision(state.offer?.protocolVersion));
    // Changes in the meantime were missed. A new session reports possible changes itself.
    if (state.continuation === 'same-session') for (const frame of state.missed()) session.relay.fromServer(frame);
    return session;
  }

  #open<Peer extends DownstreamPeer>(
    { id, state, client, origin }: NewSession,
    createPeer: (id: string, listener: ClientListener) => Peer,
  ): Session<Peer> {
    const { principal, era } = client;
    const { deps, calls, requestTimeoutMs, maxCallTimeMs, maxSessionInFlight, storage } = this.#options;
    const log = deps.log.child({ session: id.slice(0, 6) });
    const relay = new Relay({
      log,
      calls,
      origin,
      era,
      requestTimeoutMs,
      maxCallTimeMs,
      maxSessionInFlight,
      tap: calls.taps?.session(client),
      goesOn: ({ id: callId }) => state?.isHandedOver === true && state.positions.isResumable(callId),
      onReady: (revision) => log.debug({ revision: revision.id }, 'session ready'),
      onEnd: (reason) => {
        if (this.#entries.delete(id)) this.#count(principal, -1);
        this.#linkEnded(client);
        if (state?.isHandedOver === false) storage?.ended(id);
        log.debug({ code: reason.code, open: this.#entries.size }, `session ended: ${reason.message}`);
      },
    });
    const restorer = era === 'legacy' ? this.#restorerFor(relay, client, state) : undefined;
    const link = this.#dial(relay, client, state, restorer);
    let peer: Peer;
    try {
      peer = createPeer(id, relay);
    } catch (thrown) {
      link.close(toBridgeError(thrown));
      this.#linkEnded(client);
      throw thrown;
    }
    relay.join(peer, link, restorer);
    // The client may be gone already. Then its session is over, and an entry for it would stay for ever.
    if (!relay.isClosed) {
      this.#entries.set(id, new SessionEntry({ id, peer, relay }, { principal, state, nowMs: deps.clock.now() }));
      this.#count(principal, 1);
      this.#startSweep();
      log.debug({ open: this.#entries.size }, 'session opened');
    }
    return { id, peer, relay };
  }

  /** Notifies the observer of a client that gets no session by a rule of its transport. */
  refuse({ transport, principal }: Pick<SessionClient, 'transport' | 'principal'>, reason: BridgeError): void {
    const { observer, server } = this.#options.calls;
    observer?.refused({ transport, principal, server }, reason.code);
  }

  /** Throws a BridgeError if a limit is reached. Evicts an abandoned session where that frees a slot. */
  #checkLimits(principal: string | undefined): void {
    if (this.#isDraining) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no new sessions.', {
        retryAfterMs: 1000,
      });
    }
    const { maxSessions, maxCallerSessions = maxSessions } = this.#options;
    const isOfCaller = maxCallerSessions < maxSessions && this.countOf(principal) >= maxCallerSessions;
    if (isOfCaller && !this.#evict(principal, 'own')) {
      throw this.#limitReached(
        `This caller has ${maxCallerSessions} sessions, the most allowed`,
        '--max-caller-sessions',
      );
    }
    if (this.#entries.size >= maxSessions && !this.#evict(principal, 'all')) {
      throw this.#limitReached(`All ${maxSessions} sessions are taken`, '--max-sessions');
    }
    this.#checkWiderLimits(principal);
  }

  #checkWiderLimits(principal: string | undefined): void {
    const { widerLimits } = this.#options;
    if (widerLimits === undefined) return;
    if (principal !== undefined) this.#evictFor(principal, 'own', () => widerLimits.refusalFor(principal));
    this.#evictFor(principal, 'all', () => widerLimits.refusal());
  }

  #evictFor(principal: string | undefined, among: 'own' | 'all', ask: () => WiderRefusal | undefined): void {
    const refusal = ask();
    if (refusal === undefined) return;
    const isOneLess = refusal.remedy === 'end-one' && this.#evict(principal, among);
    if (!isOneLess || ask() !== undefined) throw refusal.error;
  }

  /** Returns the keeper of a session that can outlive its connection. */
  #restorerFor(owner: Relay, client: SessionClient, stored: SessionState | undefined): SessionRestorer | undefined {
    const { dialers, deps } = this.#options;
    const { restores: policy, name } = dialers;
    if (policy === undefined || (stored === undefined && policy.afterLoss === 'ends')) return undefined;
    const dialer = dialers.forCaller(client.environment, client.principal);
    const dial = (listener: LinkOwner): UpstreamLink => dialer.dial(listener);
    return new SessionRestorer({ deps, policy, state: stored ?? new SessionState(), dialer: { name, dial }, owner });
  }

  /**
   * Dials a link. All server processes that may exist can belong to sessions, so an abandoned one is ended if there are
   * too many.
   */
  #dial(
    relay: Relay,
    client: SessionClient,
    state: SessionState | undefined,
    restorer: SessionRestorer | undefined,
  ): UpstreamLink {
    const isRestored = state?.offer !== undefined && state.continuation === 'new-session';
    if (restorer !== undefined && isRestored) return restorer.begin();
    const { principal, environment } = client;
    const dialer = this.#options.dialers.forCaller(environment, principal);
    const dial = (): UpstreamLink =>
      client.era === 'legacy' ? dialer.dial(relay, state) : dialer.dialCalls(relay, client.context);
    try {
      return dial();
    } catch (thrown) {
      const isFull = thrown instanceof BridgeError && thrown.code === 'ERR_SESSION_LIMIT';
      if (!isFull || !this.#evict(principal, 'processes')) throw thrown;
      return dial();
    }
  }

  #linkEnded({ environment }: SessionClient): void {
    if (environment !== undefined) this.#options.dialers.linkEnded(environment);
  }

  #evict(principal: string | undefined, among: 'own' | 'all' | 'processes'): boolean {
    const entries = [...this.#entries.values()].filter(
      ({ relay }) => among !== 'processes' || relay.process !== undefined,
    );
    const abandoned = findAbandoned(entries, { principal, among: among === 'own' ? 'own' : 'all' });
    if (abandoned === undefined) return false;
    this.#evictions.evicted();
    abandoned.relay.close(
      new BridgeError('ERR_SESSION_CLOSED', 'The session was abandoned, and another one needed its slot.'),
    );
    return true;
  }

  /** Returns the log of a session's streams, which is stored for other bridges. */
  replayOf(id: string): ReplayLog | undefined {
    return this.#options.storage?.replayOf(id);
  }

  /**
   * Tells if a new session could be opened, as far as is known without trying. A caller's own limit or sessions in use
   * may still prevent it.
   */
  get hasCapacity(): boolean {
    if (this.#entries.size < this.#options.maxSessions) return true;
    for (const entry of this.#entries.values()) if (entry.isUnattended) return true;
    return false;
  }

  /** Returns the number of sessions of a caller. */
  countOf(principal: string | undefined): number {
    return this.#perPrincipal.get(principal) ?? 0;
  }

  #count(principal: string | undefined, change: 1 | -1): void {
    const count = this.countOf(principal) + change;
    if (count === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, count);
  }

  #limitReached(what: string, option: string): BridgeError {
    const message = `${what}, and all of them are in use; end one (DELETE), try again later, or raise ${option}.`;
    return new BridgeError('ERR_SESSION_LIMIT', message, {
      retryAfterMs: Math.min(this.#options.sessionTimeoutMs, 30_000),
    });
  }

  /**
   * Returns the session with this id, and counts as a sign of life of its client. For other callers there is no such
   * session: a lost id lets nobody else in, and does not reveal that the session exists.
   */
  use(id: string, principal: string): Session | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.principal !== principal) return undefined;
    entry.used(this.#options.deps.clock.now());
    return entry;
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  #startSweep(): void {
    const { deps, sessionTimeoutMs, idleTimeouts } = this.#options;
    const { clock } = deps;
    const leftMs = idleTimeouts?.leftMs ?? sessionTimeoutMs;
    const periodMs = sweepPeriodOf(Math.min(sessionTimeoutMs, leftMs, shortestOf(this.#options)));
    this.#stopSweep ??= clock.every(periodMs, () => this.#sweep(clock.now()));
  }

  #sweep(nowMs: number): void {
    for (const entry of [...this.#entries.values()]) {
      entry.relay.sweep(nowMs);
      entry.look(nowMs);
      if (this.#isOverdue(entry, nowMs)) {
        entry.relay.close(new BridgeError('ERR_SESSION_CLOSED', 'The session was idle for too long.'));
      }
    }
  }

  #isOverdue(entry: SessionEntry, nowMs: number): boolean {
    const { sessionTimeoutMs, idleTimeouts } = this.#options;
    // An open call alone does not show that the client is alive. The client may be gone, and a question in the call is
    // then never answered.
    if (nowMs - entry.lastSeenMs >= sessionTimeoutMs) return true;
    if (idleTimeouts === undefined) return false;
    const hasLeft = entry.peer.hasLeft || !entry.hasReturned;
    return nowMs - entry.lastUsedMs >= (hasLeft ? idleTimeouts.leftMs : idleTimeouts.quietMs);
  }

  /**
   * Opens no new sessions and calls. Resolves when all open calls are answered or have timed out, or after `graceMs`.
   */
  drain(graceMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#isDraining = true;
    for (const { relay } of this.#entries.values()) relay.drain();
    return drained(this.#options.deps.clock, graceMs, () => this.#hasOpenCalls());
  }

  #hasOpenCalls(): boolean {
    for (const { relay } of this.#entries.values()) if (relay.openCalls > 0) return true;
    return false;
  }

  /**
   * Opens nothing new, and ends each session as soon as it has no open call, so that its client opens a new one at the
   * replacement. Resolves when no session is left, or after `graceMs`.
   */
  retire(graceMs: number, reason: BridgeError): Promise<void> {
    this.#isDraining = true;
    return drained(this.#options.deps.clock, graceMs, () => {
      for (const { relay } of [...this.#entries.values()]) if (relay.openCalls === 0) relay.close(reason);
      return this.#entries.size > 0;
    });
  }

  /**
   * Ends sessions that other bridges may continue, or have declared gone. Servers are not notified, so that the
   * sessions can be continued.
   * @param isMeant selects sessions by id. Default: all.
   */
  abandon(reason: BridgeError, isMeant: (id: string) => boolean = () => true): void {
    for (const { id, state, relay } of [...this.#entries.values()]) {
      if (!isMeant(id)) continue;
      if (state !== undefined) state.isHandedOver = true;
      relay.close(reason);
    }
  }

  /**
   * Hands over stored sessions to other bridges: each when its last call is answered, and the rest after `graceMs`.
   * Calls that are still open then continue with their session if the server's streams can be resumed, and fail
   * otherwise. Resolves when the store has been notified of all of them.
   */
  async handOver(graceMs: number, reason: BridgeError): Promise<void> {
    const told: Promise<void>[] = [];
    const stored = (): readonly SessionEntry[] =>
      [...this.#entries.values()].filter(({ state }) => state?.offer !== undefined);
    await drained(this.#options.deps.clock, graceMs, () => {
      const entries = stored();
      const idle = entries.filter(({ relay }) => relay.openCalls === 0);
      for (const entry of idle) told.push(this.#handOver(entry, reason));
      return idle.length < entries.length;
    });
    for (const entry of stored()) told.push(this.#handOver(entry, reason));
    await Promise.all(told);
  }

  /** Ends the session here before the store is notified, so that no other bridge has it at the same time. */
  async #handOver({ id, state, relay }: SessionEntry, reason: BridgeError): Promise<void> {
    if (state !== undefined) state.isHandedOver = true;
    relay.close(reason);
    await this.#options.storage?.handedOver(id);
  }

  close(reason: BridgeError): void {
    this.#isDraining = true;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    this.#evictions.close();
    for (const { relay } of [...this.#entries.values()]) relay.close(reason);
  }
}
