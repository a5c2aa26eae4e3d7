import { createHash } from 'node:crypto';
import type { RemoteConfig } from '../../config/remote.ts';
import type { Clock } from '../../deps.ts';
import type { ModernRevisionId } from '../../mcp/vocabulary/revisions.ts';
import type { ObservedServer } from '../../relay/observer.ts';
import type { Step } from './detection.ts';

/** The result of a detection. */
export type Verdict =
  | {
      readonly kind: 'legacy';
      /** The step that the server accepted. `discover` if none was, and the server was only found not to be modern. */
      readonly by: Step;
      /** `weak`: found while the server was failing, or through something that changes requests. */
      readonly confidence: 'firm' | 'weak';
    }
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId };

/**
 * Lifetime of a firm legacy verdict. Such a verdict is never contradicted, because a server that was upgraded still
 * accepts `initialize`. So it is checked once a day, at the start of a session.
 */
export const FIRM_LEGACY_MS = 24 * 60 * 60_000;
export const WEAK_LEGACY_MS = 60_000;
/**
 * Number of verdicts. There is one for each server that the user has named and each set of forwarded headers. The
 * oldest is dropped.
 */
const MAX_VERDICTS = 1000;

/** Called with what a server has been found to speak. */
export type Learned = (server: ObservedServer) => void;

interface Entry {
  readonly verdict: Verdict;
  /** `Infinity` means until contradicted. A server that is not modern anymore shows it at the first request. */
  readonly untilMs: number;
}

/**
 * Remembers verdicts in memory, and prevents two detections of one server at the same time. Failures are not
 * remembered, because neither 401 nor 503 says anything about an era.
 */
export class VerdictCache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #flights = new Map<string, Promise<Verdict>>();
  readonly #learned: Learned;

  /** @param learned called with each verdict */
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

  /**
   * Forgets a verdict of this kind, because the server has behaved otherwise. It may have been replaced, and is asked
   * again.
   */
  doubt(key: string, kind: Verdict['kind']): void {
    if (this.#entries.get(key)?.verdict.kind === kind) this.#entries.delete(key);
  }

  /**
   * Returns the known verdict, or that of a detection under way, or that of `detect`. Rejects as `detect` does, for all
   * who wait for it.
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

/** Undefined if the server was found to be legacy without opening a session, which does not show its transport. */
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

/** Returns the key of the verdict for clients whose requests have these forwarded headers; see `Lane`. */
export type KeyOf = (forwarded: Readonly<Record<string, string>> | undefined) => string;

/**
 * A key stands for one server and one set of credentials, because a gateway may have different servers for different
 * users.
 */
export function createKeyOf(url: URL, remote: RemoteConfig): KeyOf {
  const base = `${url.origin}${url.pathname} ${digest([...remote.headers], remote.bearerTokenFile)}`;
  return (forwarded) => (forwarded === undefined ? base : `${base} ${digest(Object.entries(forwarded))}`);
}

/** Distinguishes credentials without keeping them. */
function digest(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
