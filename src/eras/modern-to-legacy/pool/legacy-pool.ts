import type { Deps } from '../../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../../errors.ts';
import { MAX_CAPABILITIES_LENGTH } from '../../../mcp/translate/capabilities.ts';
import type { SessionDialer } from '../../../relay/ports.ts';
import type { Readiness } from '../../../relay/readiness.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import { type CallsElsewhere, LegacySession } from './legacy-session.ts';
import { LEASE_WAIT_MS, SessionQueue, type SessionQueueLimits } from './session-queue.ts';
import type { SessionPool, SessionUser } from './session-user.ts';
import type { SessionWanted } from './session-wanted.ts';
import type { Attribution } from './sole-owner.ts';

export interface LegacyPoolLimits extends SessionQueueLimits {
  /** Sessions of one caller. The limit leaves sessions for others, because a caller may give itself many names. */
  readonly perCaller: number;
  /** Over stdio each session is a process. */
  readonly total: number;
  /** A session without calls ends after this long. */
  readonly idleMs: number;
}

export const LEGACY_POOL_LIMITS: LegacyPoolLimits = {
  perCaller: 256,
  total: 256,
  idleMs: 5 * 60_000,
  waiting: 1024,
  waitingPerCaller: 1024,
};

export interface LegacyPoolOptions {
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  readonly attribution: Attribution;
  readonly calls: CallsElsewhere;
  readonly limits?: Partial<LegacyPoolLimits>;
}

/**
 * Sessions of a legacy server for callers that have none of their own. A session is opened when somebody wants one as
 * exactly this client, and kept warm for the next call. Calls share it; one that needs it to itself, because its client
 * may be asked something, gets the first one of its client that no other such call has, or waits for it.
 */
export class LegacyPool implements SessionPool {
  readonly #options: LegacyPoolOptions;
  readonly #limits: LegacyPoolLimits;
  /** Least recently used first. */
  readonly #sessions = new Set<LegacySession>();
  #lastUsed: LegacySession | undefined;
  /**
   * In the order of their opening: calls one after the other always meet in the first, where the server remembers what
   * was done there.
   */
  readonly #byKey = new Map<string, readonly LegacySession[]>();
  readonly #queue: SessionQueue;
  /**
   * Counts how often something became free since the pool began to serve the calls that wait; 0: it is not serving
   * them.
   */
  #freed = 0;
  /** A call that may be asked something needs a session to itself, because only that tells which call is asked. */
  #keepsApart: boolean;
  #isClosed = false;

  constructor(options: LegacyPoolOptions) {
    this.#options = options;
    this.#limits = { ...LEGACY_POOL_LIMITS, ...options.limits };
    this.#keepsApart = options.attribution === 'lease';
    this.#queue = new SessionQueue(this.#limits, options.deps.clock);
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Calls that wait for a session of their own. */
  get waiting(): number {
    return this.#queue.size;
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  readiness(): Readiness {
    return this.#options.dialer.readiness();
  }

  /** Has the user join a session. Throws a BridgeError when the limit is reached, or the server cannot be reached now. */
  take(user: SessionUser): LegacySession {
    if (this.#isClosed) throw SHUTTING_DOWN;
    const { wanted } = user;
    const group = wanted.key === undefined ? undefined : this.#byKey.get(wanted.key);
    const session = group?.find((one) => this.#suits(one, user)) ?? group?.at(-1) ?? this.#open(wanted);
    if (session === undefined) throw this.#limitReached(wanted, 'are in use');
    return this.#join(session, user);
  }

  /**
   * Does what `take` does for a call that may be asked something: no other such call uses the session until the user
   * has left it. Where calls need not be kept apart for that, they share. The user is granted a session at once or later.
   * Throws when too many wait, too.
   */
  lease(user: SessionUser): void {
    if (this.#isClosed) throw SHUTTING_DOWN;
    const free = this.#queue.isEmpty ? this.#tryLease(user) : undefined;
    if (free !== undefined) return user.granted(free);
    const { wanted } = user;
    checkSize(wanted);
    this.#queue.add(user, () => this.#limitReached(wanted, `were in use for ${LEASE_WAIT_MS} ms`));
    // The calls before it may wait for sessions of other clients.
    this.#serve();
  }

  /** Undefined: none is free, and the limit is reached. */
  #tryLease(user: SessionUser): LegacySession | undefined {
    const { wanted } = user;
    const group = (wanted.key === undefined ? undefined : this.#byKey.get(wanted.key)) ?? [];
    const hasOthers = group.length > 0;
    const isFree = (one: LegacySession): boolean =>
      (one.askableUsers === 0 || !this.#keepsApart) && this.#suits(one, user);
    const session = group.find(isFree) ?? this.#open(wanted);
    if (session === undefined) return undefined;
    try {
      return this.#join(session, user);
    } catch (thrown) {
      // No more processes may run than do: one of them will be free.
      if (hasOthers && toBridgeError(thrown).code === 'ERR_SESSION_LIMIT') return undefined;
      throw thrown;
    }
  }

  /** True if a question in a call of this user can be told there from one in an abandoned call. */
  #suits(session: LegacySession, { identity }: SessionUser): boolean {
    return !this.#keepsApart || session.isClearFor(identity);
  }

  #join(session: LegacySession, user: SessionUser): LegacySession {
    this.#used(session);
    try {
      user.join(session.server);
    } catch (thrown) {
      if (session.isIdle) this.#end(session);
      throw thrown;
    }
    if (user.isAskable) session.askableUsers += 1;
    return session;
  }

  /** Moves the session to the end of the order of use. */
  #used(session: LegacySession): void {
    if (session === this.#lastUsed) return;
    this.#lastUsed = session;
    this.#sessions.delete(session);
    this.#sessions.add(session);
  }

  /** Gives what is free to those who wait for it. */
  #serve(): void {
    if (this.#queue.isEmpty) return;
    this.#freed += 1;
    if (this.#freed > 1) return;
    let seen: number;
    do {
      seen = this.#freed;
      this.#serveOnce();
    } while (this.#freed > seen);
    this.#freed = 0;
  }

  #serveOnce(): void {
    const inVain = new Set<string | undefined>();
    for (const user of this.#queue.toArray()) {
      const { key, caller } = user.wanted;
      if (!user.isWaiting || inVain.has(key ?? caller)) continue;
      try {
        const session = this.#tryLease(user);
        if (session !== undefined) user.granted(session);
        else inVain.add(key ?? caller);
      } catch (thrown) {
        user.refused(toBridgeError(thrown));
      }
    }
  }

  /** Returns the server's answer to `initialize` from any session of this caller that serves now. */
  knownResult({ caller, affinity }: SessionWanted): InitializeResult | undefined {
    for (const { wanted, initializeResult } of this.#sessions) {
      const isSame = wanted.caller === caller && wanted.affinity === affinity;
      if (isSame && initializeResult !== undefined) return initializeResult;
    }
    return undefined;
  }

  /** Undefined: the pool has no capacity for another session. */
  #open(wanted: SessionWanted): LegacySession | undefined {
    checkSize(wanted);
    if (!this.#freeCapacity(wanted.caller)) return undefined;
    const { key } = wanted;
    const { dialer, deps, handshakeTimeoutMs, attribution, calls } = this.#options;
    const session = new LegacySession({
      dialer,
      deps,
      handshakeTimeoutMs,
      attribution,
      calls,
      wanted,
      onUnplaced: () => {
        if (attribution === 'stream') this.#keepsApart = true;
      },
      onAbandonedLess: () => this.#serve(),
    });
    if (key !== undefined) this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), session]);
    return session;
  }

  /** Ends an idle session where the pool is full. False: the pool is full, and no session of it is idle. */
  #freeCapacity(caller: string): boolean {
    const all = [...this.#sessions];
    const own = all.filter(({ wanted }) => wanted.caller === caller);
    const { perCaller, total } = this.#limits;
    const crowd = own.length >= perCaller ? own : all.length >= total ? all : undefined;
    const idle = crowd?.find(({ isIdle }) => isIdle);
    if (idle !== undefined) this.#end(idle);
    return crowd === undefined || idle !== undefined;
  }

  #limitReached({ caller }: SessionWanted, what: string): BridgeError {
    const own = [...this.#sessions].filter(({ wanted }) => wanted.caller === caller).length;
    const { perCaller, total } = this.#limits;
    const isOwn = own >= perCaller;
    const whose = isOwn ? `${perCaller} sessions for this caller` : `${total} sessions for requests like this`;
    return new BridgeError(
      'ERR_SESSION_LIMIT',
      `${this.name} has ${whose}, the most allowed, and all ${what}; try again later, or raise --pool-size.`,
      { retryAfterMs: 1000 },
    );
  }

  left({ isAskable }: SessionUser, session: LegacySession): void {
    if (isAskable) session.askableUsers -= 1;
    const { isIdle } = session;
    if (isIdle && this.#sessions.has(session)) this.#idle(session);
    if (isAskable || isIdle) this.#serve();
  }

  #idle(session: LegacySession): void {
    if (session.wanted.key === undefined) this.#end(session);
    else session.endAfter(this.#limits.idleMs, () => this.#end(session));
  }

  /** Ends the sessions whose calls other bridges go on with. The server is not told. */
  endHandedOver(): void {
    for (const session of [...this.#sessions]) if (session.isHandedOver) this.#end(session);
  }

  #end(session: LegacySession): void {
    this.#remove(session);
    void session.close();
  }

  #remove(session: LegacySession): void {
    if (!this.#sessions.delete(session)) return;
    if (session === this.#lastUsed) this.#lastUsed = undefined;
    const { key } = session.wanted;
    if (key === undefined) return;
    const others = (this.#byKey.get(key) ?? []).filter((other) => other !== session);
    if (others.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, others);
  }

  /** Ends all sessions; those who use one, or wait for one, are told. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const user of this.#queue.toArray()) user.refused(SHUTTING_DOWN);
    const sessions = [...this.#sessions];
    for (const session of sessions) this.#remove(session);
    await Promise.all(sessions.map((session) => session.close()));
    await this.#options.dialer.close();
  }

  killNow(): void {
    this.#options.dialer.killNow();
  }
}

/** Throws a BridgeError if the capabilities are too large: they are kept as long as the session. */
function checkSize({ capabilities }: SessionWanted): void {
  if (capabilities.key.length > MAX_CAPABILITIES_LENGTH) throw tooManyCapabilities(capabilities.key.length);
}

export function tooManyCapabilities(length: number): BridgeError {
  const message = `The capabilities of this request have ${length} characters as JSON; a legacy server can be told ${MAX_CAPABILITIES_LENGTH}.`;
  return new BridgeError('ERR_WIRE_MESSAGE', message);
}
