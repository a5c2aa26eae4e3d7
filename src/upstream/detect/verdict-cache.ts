import { createHash } from 'node:crypto';
import type { RemoteConfig } from '../../config/remote.ts';
import type { Clock } from '../../deps.ts';
import type { ModernRevisionId } from '../../mcp/vocabulary/revisions.ts';
import type { ObservedServer } from '../../relay/observer.ts';
import type { Step } from './detection.ts';

/** What was found out about a server. */
export type Verdict =
  | {
      readonly kind: 'legacy';
      /** The step that it took; `discover`: none, it only was found not to be modern. */
      readonly by: Step;
      /** `weak`: found while the server was in trouble, or through something that changes requests. */
      readonly confidence: 'firm' | 'weak';
    }
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId };

/**
 * A legacy verdict never proves wrong by itself: a server that was upgraded meanwhile still takes `initialize`. So it
 * is looked at again once a day, at the start of a session.
 */
export const FIRM_LEGACY_MS = 24 * 60 * 60_000;
export const WEAK_LEGACY_MS = 60_000;
/** Keys are servers the user named; more are a mistake somewhere, and the oldest goes. */
const MAX_VERDICTS = 1000;

/** Is told what a server has been found to speak. */
export type Learned = (server: ObservedServer) => void;

interface Entry {
  readonly verdict: Verdict;
  /** `Infinity`: until contradicted. A modern server that is none any more says so at the first request. */
  readonly untilMs: number;
}

/**
 * Remembers verdicts, and sees to it that one server is not asked twice at the same time. In memory only. Failures are
 * not remembered: neither 401 nor 503 says anything about an era.
 */
export class VerdictCache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #flights = new Map<string, Promise<Verdict>>();
  readonly #learned: Learned;

  /** @param learned is told of each verdict */
  constructor(clock: Clock, learned: Learned) {
    this.#clock = clock;
    this.#learned = learned;
  }

  find(key: string): Verdict | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#clock.now() < entry.untilMs ? entry.verdict : undefined;
  }

  store(key: string, verdict: Verdict): void {
    this.#entries.delete(key);
    this.#entries.set(key, { verdict, untilMs: this.#clock.now() + lifetimeMs(verdict) });
    const oldest = this.#entries.size > MAX_VERDICTS ? this.#entries.keys().next() : undefined;
    if (oldest?.done === false) this.#entries.delete(oldest.value);
    const spoken = spokenBy(verdict);
    if (spoken !== undefined) this.#learned(spoken);
  }

  /** A server did not behave as it did when it was asked: it may be another one by now, and is asked again. */
  doubt(key: string, kind: Verdict['kind']): void {
    if (this.#entries.get(key)?.verdict.kind === kind) this.#entries.delete(key);
  }

  /**
   * The verdict that is known, or is just being found out by somebody else, or comes of `detect`. Rejects as `detect`
   * does, for all who waited for it.
   */
  resolve(key: string, detect: () => Promise<Verdict>): Promise<Verdict> {
    const known = this.find(key);
    if (known !== undefined) return Promise.resolve(known);
    const flight = this.#flights.get(key);
    if (flight !== undefined) return flight;
    const started = detect()
      .then((verdict) => {
        this.store(key, verdict);
        return verdict;
      })
      .finally(() => this.#flights.delete(key));
    this.#flights.set(key, started);
    return started;
  }
}

/** Undefined: that it is of the legacy era was found out without a session. */
function spokenBy(verdict: Verdict): ObservedServer | undefined {
  if (verdict.kind === 'modern') return { transport: 'streamable-http', era: 'modern', revision: verdict.revision };
  if (verdict.by === 'discover') return undefined;
  const transport = verdict.by === 'eventStream' ? 'http-sse' : 'streamable-http';
  return { transport, era: 'legacy', revision: undefined };
}

function lifetimeMs(verdict: Verdict): number {
  if (verdict.kind === 'modern') return Number.POSITIVE_INFINITY;
  return verdict.confidence === 'firm' ? FIRM_LEGACY_MS : WEAK_LEGACY_MS;
}

/** Names what a verdict is about, for a client whose requests bring these headers along; see Lane. */
export type KeyOf = (forwarded: Readonly<Record<string, string>> | undefined) => string;

/** One server and one set of credentials: behind a gateway another user may get another server. */
export function createKeyOf(url: URL, remote: RemoteConfig): KeyOf {
  const base = `${url.origin}${url.pathname} ${digest([...remote.headers], remote.bearerTokenFile)}`;
  return (forwarded) => (forwarded === undefined ? base : `${base} ${digest(Object.entries(forwarded))}`);
}

/** Tells credentials apart without keeping them. */
function digest(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
