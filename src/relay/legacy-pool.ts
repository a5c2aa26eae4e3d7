import type { Deps } from '../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { type CanonicalCapabilities, MAX_CAPABILITIES_LENGTH } from '../mcp/era-capabilities.ts';
import type { Implementation } from '../mcp/meta.ts';
import { LegacySession } from './legacy-session.ts';
import type { Readiness, ServerListener, UpstreamDialer, UpstreamLink } from './ports.ts';
import type { InitializeResult } from './shared/initialize-result.ts';

export interface LegacyPoolLimits {
  /** Clients that declare other capabilities each time must not fill the pool. */
  readonly perPrincipal: number;
  /** Over stdio each session is a process. */
  readonly total: number;
  /** A session without calls ends after this long. */
  readonly idleMs: number;
}

export const LEGACY_POOL_LIMITS: LegacyPoolLimits = { perPrincipal: 8, total: 256, idleMs: 5 * 60_000 };

export interface LegacyPoolOptions {
  readonly dialer: UpstreamDialer;
  readonly deps: Deps;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /** What the server is told it talks to. */
  readonly clientInfo: Implementation;
  readonly limits?: Partial<LegacyPoolLimits>;
}

/** Who wants a session; equal ones share one. */
export interface SessionWanted {
  readonly principal: string;
  readonly capabilities: CanonicalCapabilities;
  /** Keeps callers apart that have the same name. Undefined: a session of its own, which ends with its last seat. */
  readonly affinity: string | undefined;
}

export interface PooledSeat {
  readonly session: LegacySession;
  /** Closing it frees the seat. */
  readonly link: UpstreamLink;
}

/**
 * Sessions of a legacy server for callers that have none of their own. A session is opened when somebody wants one with
 * exactly these capabilities, and kept warm for the next call.
 */
export class LegacyPool {
  readonly #options: LegacyPoolOptions;
  readonly #limits: LegacyPoolLimits;
  /** Least recently used first. */
  readonly #sessions = new Map<LegacySession, { readonly key: string | undefined }>();
  #lastUsed: LegacySession | undefined;
  readonly #byKey = new Map<string, LegacySession>();
  readonly #idleTimers = new Map<LegacySession, () => void>();
  #isClosed = false;

  constructor(options: LegacyPoolOptions) {
    this.#options = options;
    this.#limits = { ...LEGACY_POOL_LIMITS, ...options.limits };
  }

  get size(): number {
    return this.#sessions.size;
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  readiness(): Readiness {
    return this.#options.dialer.readiness();
  }

  /** Throws a BridgeError when there is no room, or the server cannot be reached now. */
  take(wanted: SessionWanted, listener: ServerListener): PooledSeat {
    if (this.#isClosed) throw SHUTTING_DOWN;
    const key = keyOf(wanted);
    const session = (key === undefined ? undefined : this.#byKey.get(key)) ?? this.#open(wanted, key);
    this.#idleTimers.get(session)?.();
    this.#idleTimers.delete(session);
    this.#used(session, key);
    try {
      return { session, link: session.take(listener) };
    } catch (thrown) {
      if (session.seats === 0) this.#end(session);
      throw thrown;
    }
  }

  /** It is last in the order of use. */
  #used(session: LegacySession, key: string | undefined): void {
    if (session === this.#lastUsed) return;
    this.#lastUsed = session;
    this.#sessions.delete(session);
    this.#sessions.set(session, { key });
  }

  /** What the server said of itself to a caller of this name, in whatever session that serves now. */
  knownResult(principal: string): InitializeResult | undefined {
    for (const session of this.#sessions.keys()) {
      if (session.principal === principal && session.initializeResult !== undefined) return session.initializeResult;
    }
    return undefined;
  }

  #open({ principal, capabilities }: SessionWanted, key: string | undefined): LegacySession {
    if (capabilities.key.length > MAX_CAPABILITIES_LENGTH) throw tooManyCapabilities(capabilities.key.length);
    this.#makeRoom(principal);
    const { dialer, deps, handshakeTimeoutMs, clientInfo } = this.#options;
    const session = new LegacySession({
      dialer,
      deps,
      handshakeTimeoutMs,
      clientInfo,
      principal,
      capabilities: capabilities.capabilities,
      onIdle: (idle) => this.#idle(idle),
    });
    if (key !== undefined) this.#byKey.set(key, session);
    return session;
  }

  #makeRoom(principal: string): void {
    const own = [...this.#sessions.keys()].filter((session) => session.principal === principal);
    if (own.length >= this.#limits.perPrincipal) this.#evict(own, this.#limits.perPrincipal);
    if (this.#sessions.size >= this.#limits.total) this.#evict([...this.#sessions.keys()], this.#limits.total);
  }

  #evict(candidates: readonly LegacySession[], limit: number): void {
    const idle = candidates.find(({ seats }) => seats === 0);
    if (idle !== undefined) return this.#end(idle);
    throw new BridgeError(
      'ERR_SESSION_LIMIT',
      `${this.name} has ${limit} sessions for requests like this, the most allowed, and all are in use; try again later.`,
      { retryAfterMs: 1000 },
    );
  }

  #idle(session: LegacySession): void {
    const entry = this.#sessions.get(session);
    if (entry === undefined) return;
    if (entry.key === undefined) return this.#end(session);
    this.#idleTimers.get(session)?.();
    const cancel = this.#options.deps.clock.after(this.#limits.idleMs, () => this.#end(session));
    this.#idleTimers.set(session, cancel);
  }

  #end(session: LegacySession): void {
    this.#remove(session);
    void session.close();
  }

  #remove(session: LegacySession): void {
    const key = this.#sessions.get(session)?.key;
    this.#sessions.delete(session);
    if (session === this.#lastUsed) this.#lastUsed = undefined;
    if (key !== undefined) this.#byKey.delete(key);
    this.#idleTimers.get(session)?.();
    this.#idleTimers.delete(session);
  }

  /** Ends all sessions; those who sit there are told. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const sessions = [...this.#sessions.keys()];
    for (const session of sessions) this.#remove(session);
    await Promise.all(sessions.map((session) => session.close()));
    await this.#options.dialer.close();
  }

  killNow(): void {
    this.#options.dialer.killNow();
  }
}

/** They are kept as long as the session. */
export function tooManyCapabilities(length: number): BridgeError {
  const message = `The capabilities of this request have ${length} characters as JSON; a legacy server can be told ${MAX_CAPABILITIES_LENGTH}.`;
  return new BridgeError('ERR_WIRE_MESSAGE', message);
}

function keyOf({ principal, capabilities, affinity }: SessionWanted): string | undefined {
  return affinity === undefined ? undefined : JSON.stringify([principal, affinity, capabilities.key]);
}
