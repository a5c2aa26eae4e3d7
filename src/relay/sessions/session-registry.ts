import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { ERAS, servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { type CallTimes, drained, type Exchanges, shortestOf, sweepPeriodOf } from '../exchanges.ts';
import type { ClientOrigin, Transport } from '../observer.ts';
import type {
  CallContext,
  CallerDialers,
  CallerEnvironment,
  ClientListener,
  DownstreamPeer,
  UpstreamLink,
} from '../ports.ts';
import { Relay } from '../relay.ts';
import type { WiderLimits, WiderRefusal } from '../shared-state.ts';
import { EvictionLog, findAbandoned } from './abandoned-sessions.ts';
import { type Session, SessionEntry } from './session-entry.ts';
import type { SessionState } from './session-state.ts';
import type { ReplayLog, SessionStorage } from './session-storage.ts';

export interface SessionRegistryOptions extends CallTimes {
  readonly dialers: CallerDialers;
  readonly deps: Deps;
  readonly maxSessions: number;
  /** Sessions of callers with one name; default: as many as there may be. */
  readonly maxPerCaller?: number;
  /** Of several bridges; default: there are none. */
  readonly widerLimits?: WiderLimits | undefined;
  /** Calls one session may have open; the default is the relay's. */
  readonly maxCallsPerSession?: number;
  /** Those of all sessions, and of whoever shares it. */
  readonly exchanges: Exchanges;
  /** A session that nobody has been connected to or has called for this long ends, calls included. */
  readonly sessionTimeoutMs: number;
  /** When it ends before that; default: never. */
  readonly idleTimeouts?: IdleTimeouts;
  /** Where sessions over Streamable HTTP are kept for other bridges; default: nowhere. */
  readonly storage?: SessionStorage | undefined;
}

/** How long a session stays that nobody is connected to and that has no open call. */
export interface IdleTimeouts {
  /** Its client has closed its stream and asked nothing since, or never returned after `initialize`: it has left. */
  readonly leftMs: number;
  /** Its client calls without having a stream: that none is open says nothing. */
  readonly quietMs: number;
}

/** The client that a session is opened for, or all modern requests of a client on a pipe. */
export type SessionClient = {
  readonly transport: Transport;
  /** Who is let back in by the session's id; undefined: nobody, for the client stays on its pipe. */
  readonly principal: string | undefined;
  /** What its server's process is told about the caller; undefined: nothing. */
  readonly environment: CallerEnvironment | undefined;
} & ({ readonly era: 'legacy' } | { readonly era: 'modern'; readonly context: CallContext });

/** A session that was opened elsewhere. */
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

/** All sessions of the bridge, whatever transport they came in by. */
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
   * Throws a BridgeError when a limit is reached or there is no server for one more. With a context it is for the modern
   * requests of one client on a pipe, which are no session to the client but are bounded, drained and closed like one.
   */
  open<Peer extends DownstreamPeer>(
    createPeer: (id: string, listener: ClientListener) => Peer,
    client: SessionClient,
  ): Session<Peer> {
    const { transport, principal, era } = client;
    const origin = { transport, principal, server: this.#options.exchanges.server };
    try {
      this.#checkLimits(principal);
      const id = this.#options.deps.randomId();
      const isStored = transport === 'streamable-http' && ERAS[era].begins === 'initialize' && principal !== undefined;
      const state = isStored ? this.#options.storage?.begin(id, principal) : undefined;
      return this.#open({ id, state, client, origin }, createPeer);
    } catch (thrown) {
      this.#options.exchanges.observer?.refused(origin, toBridgeError(thrown).code);
      throw thrown;
    }
  }

  /** Goes on with a session that another bridge had, and that was stored at this state. Throws what `open` throws. */
  restore<Peer extends DownstreamPeer>(
    { id, state, client }: StoredSession,
    createPeer: (id: string, listener: ClientListener) => Peer,
  ): Session<Peer> {
    this.#checkLimits(client.principal);
    const { transport, principal } = client;
    const origin = { transport, principal, server: this.#options.exchanges.server };
    const session = this.#open({ id, state, client, origin }, createPeer);
    session.relay.resume(servedRevision(state.offer?.protocolVersion));
    // Nobody listened meanwhile. A new session tells by itself what may have been missed before it was there.
    if (state.continuation === 'same-session') for (const frame of state.missed()) session.relay.fromServer(frame);
    return session;
  }

  #open<Peer extends DownstreamPeer>(
    { id, state, client, origin }: NewSession,
    createPeer: (id: string, listener: ClientListener) => Peer,
  ): Session<Peer> {
    const { principal, era } = client;
    const { deps, exchanges, requestTimeoutMs, maxCallMs, maxCallsPerSession, storage } = this.#options;
    const log = deps.log.child({ session: id.slice(0, 6) });
    const relay = new Relay({
      log,
      exchanges,
      origin,
      era,
      requestTimeoutMs,
      maxCallMs,
      maxOpenExchanges: maxCallsPerSession,
      goesOn: ({ id: call }) => state?.isHandedOver === true && state.positions.isResumable(call),
      onReady: (revision) => log.debug({ revision: revision.id }, 'session ready'),
      onEnd: (reason) => {
        if (this.#entries.delete(id)) this.#count(principal, -1);
        if (state?.isHandedOver === false) storage?.ended(id);
        log.debug({ code: reason.code, open: this.#entries.size }, `session ended: ${reason.message}`);
      },
    });
    const link = this.#dial(relay, client, state);
    let peer: Peer;
    try {
      peer = createPeer(id, relay);
    } catch (thrown) {
      link.close(toBridgeError(thrown));
      throw thrown;
    }
    relay.join(peer, link);
    // A client may be gone as soon as it has come; its session is then over and nobody would end it again.
    if (!relay.isClosed) {
      this.#entries.set(id, new SessionEntry({ id, peer, relay }, { link, principal, state, nowMs: deps.clock.now() }));
      this.#count(principal, 1);
      this.#startSweep();
      log.debug({ open: this.#entries.size }, 'session opened');
    }
    return { id, peer, relay };
  }

  /** Tells the observer of a client that gets no session by a rule of its transport. */
  refuse({ transport, principal }: Pick<SessionClient, 'transport' | 'principal'>, reason: BridgeError): void {
    const { observer, server } = this.#options.exchanges;
    observer?.refused({ transport, principal, server }, reason.code);
  }

  /** Evicts an abandoned session where that frees a slot. */
  #checkLimits(principal: string | undefined): void {
    if (this.#isDraining) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no new sessions.', {
        retryAfterMs: 1000,
      });
    }
    const { maxSessions, maxPerCaller = maxSessions } = this.#options;
    const isOfCaller = maxPerCaller < maxSessions && this.countOf(principal) >= maxPerCaller;
    if (isOfCaller && !this.#evict(principal, 'own')) {
      throw this.#limitReached(`This caller has ${maxPerCaller} sessions, the most allowed`, '--max-caller-sessions');
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

  /** Every server process that there may be can belong to sessions, some of them abandoned. */
  #dial(relay: Relay, client: SessionClient, state: SessionState | undefined): UpstreamLink {
    const { principal, environment } = client;
    const dialer = this.#options.dialers.forCaller(environment);
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

  #evict(principal: string | undefined, among: 'own' | 'all' | 'processes'): boolean {
    const entries = [...this.#entries.values()].filter(
      ({ link }) => among !== 'processes' || link.process !== undefined,
    );
    const abandoned = findAbandoned(entries, { principal, among: among === 'own' ? 'own' : 'all' });
    if (abandoned === undefined) return false;
    this.#evictions.evicted();
    abandoned.relay.close(
      new BridgeError('ERR_SESSION_CLOSED', 'The session was abandoned, and another one needed its slot.'),
    );
    return true;
  }

  /** Where what is said in a session is kept for other bridges. */
  replayOf(id: string): ReplayLog | undefined {
    return this.#options.storage?.replayOf(id);
  }

  /** Tells what is known without trying: a caller may have reached a limit of its own, or have sessions that are in use. */
  get hasCapacity(): boolean {
    if (this.#entries.size < this.#options.maxSessions) return true;
    for (const entry of this.#entries.values()) if (entry.isUnattended) return true;
    return false;
  }

  /** Sessions of a caller. */
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
   * The session with this id, on behalf of its client: counts as a sign of life. For everybody else there is no such
   * session: an id that got lost lets nobody in, and nobody learns that it exists.
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
    // An open call alone is no sign of life: its client may be gone, and what it is asked is never answered.
    if (nowMs - entry.lastSeenMs >= sessionTimeoutMs) return true;
    if (idleTimeouts === undefined) return false;
    const hasLeft = entry.peer.hasLeft || !entry.hasReturned;
    return nowMs - entry.lastUsedMs >= (hasLeft ? idleTimeouts.leftMs : idleTimeouts.quietMs);
  }

  /** No new sessions or calls; resolves when the open calls are answered or out of their time, or after `graceMs`. */
  drain(graceMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#isDraining = true;
    for (const { relay } of this.#entries.values()) relay.drain();
    return drained(this.#options.deps.clock, graceMs, () => this.#hasOpenCalls());
  }

  #hasOpenCalls(): boolean {
    for (const { relay } of this.#entries.values()) if (relay.openExchanges > 0) return true;
    return false;
  }

  /**
   * Opens nothing new, and ends each session as soon as none of its calls is open, so that its client opens one elsewhere.
   * Resolves when none is left, or after `graceMs`.
   */
  retire(graceMs: number, reason: BridgeError): Promise<void> {
    this.#isDraining = true;
    return drained(this.#options.deps.clock, graceMs, () => {
      for (const { relay } of [...this.#entries.values()]) if (relay.openExchanges === 0) relay.close(reason);
      return this.#entries.size > 0;
    });
  }

  /**
   * Ends those that others may go on with, or have said to be gone; a server that others may go on with is not told.
   * @param isMeant default: all
   */
  abandon(reason: BridgeError, isMeant: (id: string) => boolean = () => true): void {
    for (const { id, state, relay } of [...this.#entries.values()]) {
      if (!isMeant(id)) continue;
      if (state !== undefined) state.isHandedOver = true;
      relay.close(reason);
    }
  }

  /**
   * Lets others go on with what is stored: at once where no call is open, else when the last is answered, but no later than
   * after `graceMs`. Calls that are open then go on with their session where the server's streams can be resumed, and fail
   * where not. Resolves when all have been told that are told.
   */
  async handOver(graceMs: number, reason: BridgeError): Promise<void> {
    const told: Promise<void>[] = [];
    const stored = (): readonly SessionEntry[] =>
      [...this.#entries.values()].filter(({ state }) => state?.offer !== undefined);
    await drained(this.#options.deps.clock, graceMs, () => {
      const entries = stored();
      const idle = entries.filter(({ relay }) => relay.openExchanges === 0);
      for (const entry of idle) told.push(this.#handOver(entry, reason));
      return idle.length < entries.length;
    });
    for (const entry of stored()) told.push(this.#handOver(entry, reason));
    await Promise.all(told);
  }

  /** Here it ends first: nobody else can have it before that. */
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
