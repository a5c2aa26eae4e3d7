import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';

/** What is known of a session when one has to be evicted. */
export interface SessionUse {
  /** Whose it is; undefined: of the client on the bridge's own pipe, whose session is never abandoned. */
  readonly principal: string | undefined;
  /** Its client has sent something since `initialize`. */
  readonly hasReturned: boolean;
  /** When its client was connected, asked something, or had a call open last. */
  readonly lastUsedMs: number;
  /** Nobody is connected to it and it has no open call. */
  readonly isUnattended: boolean;
}

/**
 * The session to evict for a new one of `principal`, or undefined: every session is in use, or not the caller's to
 * end. A session whose client never returned after `initialize` goes first. Of the others a caller ends its own, and those
 * of callers who hold more sessions than it does: to flood the bridge costs the one who floods it.
 * @param among `own`: the caller is at its own limit, so only a session of its own helps
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

/** The first line waits for what comes with it; after that one line a minute tells of all that were evicted meanwhile. */
const FIRST_PAUSE_MS = 1000;
const PAUSE_MS = 60_000;

/** Tells the log how many sessions were evicted, not of each: whoever floods the bridge must not flood the log. */
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

  /** Tells what has not been told yet. */
  close(): void {
    this.#cancel?.();
    if (this.#count > 0) this.#tell();
  }
}
