import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';

/** Facts about a session that decide which one is evicted. */
export interface SessionUse {
  /**
   * The caller that opened the session. Undefined for the client on the bridge's own pipe, whose session is never
   * evicted.
   */
  readonly principal: string | undefined;
  /** True if the client has sent anything since `initialize`. */
  readonly hasReturned: boolean;
  /** Time when the client was last connected, asked something, or had a call open. */
  readonly lastUsedMs: number;
  /** True if the client is not connected and no call is open. */
  readonly isUnattended: boolean;
}

/**
 * Returns the session to evict for a new one of `principal`. Undefined if every session is in use or belongs to callers
 * with no more sessions than this one. A session whose client never returned after `initialize` is evicted first.
 * Otherwise a caller can evict its own sessions, and those of callers who hold more than it does, so that flooding the
 * bridge costs only the caller who does it.
 * @param among `own`: the caller has reached its own limit, so only a session of its own helps
 */
export function findAbandoned<Session extends SessionUse>(
  sessions: Iterable<Session>,
  { principal, among }: { readonly principal: string | undefined; readonly among: 'own' | 'all' },
): Session | undefined {
  const counts = new Map<string | undefined, number>();
  const unattended: Session[] = [];
  for (const session of sessions) {
    counts.set(session.principal, (counts.get(session.principal) ?? 0) + 1);
    const isCandidate = session.principal !== undefined && session.isUnattended;
    if (isCandidate && (among === 'all' || session.principal === principal)) unattended.push(session);
  }
  const neverReturned = leastRecentlyUsed(unattended.filter(({ hasReturned }) => !hasReturned));
  if (neverReturned !== undefined) return neverReturned;
  const countOf = (holder: string | undefined): number => counts.get(holder) ?? 0;
  const eligible = unattended.filter(
    (session) => session.principal === principal || countOf(session.principal) > countOf(principal),
  );
  const most = eligible.reduce((count, session) => Math.max(count, countOf(session.principal)), 0);
  return leastRecentlyUsed(eligible.filter((session) => countOf(session.principal) === most));
}

function leastRecentlyUsed<Session extends SessionUse>(sessions: readonly Session[]): Session | undefined {
  let found: Session | undefined;
  for (const session of sessions) if (found === undefined || session.lastUsedMs < found.lastUsedMs) found = session;
  return found;
}

/**
 * The first line is delayed so that it counts the evictions that come together. After that, at most one line a minute
 * is logged.
 */
const FIRST_PAUSE_MS = 1000;
const PAUSE_MS = 60_000;

/**
 * Logs the number of evicted sessions instead of each eviction, so that a caller who floods the bridge cannot flood the
 * log.
 */
export class EvictionLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  #count = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor({ log, clock }: { readonly log: Logger; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
  }

  evicted(): void {
    this.#count += 1;
    const pauseMs = Math.max(FIRST_PAUSE_MS, this.#toldAtMs + PAUSE_MS - this.#clock.now());
    this.#cancel ??= this.#clock.after(pauseMs, () => this.#tell());
  }

  #tell(): void {
    this.#cancel = undefined;
    this.#toldAtMs = this.#clock.now();
    const evicted = this.#count;
    this.#count = 0;
    const what = evicted === 1 ? '1 abandoned session was' : `${evicted} abandoned sessions were`;
    this.#log.warn({ evicted }, `${what} ended to free slots for new ones: nobody was connected and no call was open`);
  }

  /** Logs the evictions that have not been logged yet. */
  close(): void {
    this.#cancel?.();
    if (this.#count > 0) this.#tell();
  }
}
