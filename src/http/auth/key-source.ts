import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import { RecentNames } from '../../collections/bounded-collections.ts';
import type { OAuthConfig } from '../../config/access.ts';
import type { Clock, Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { ChangingFile } from '../changing-file.ts';
import type { HttpClient } from '../client/client.ts';
import { createFetchJson, discoverKeys } from './discover-issuer.ts';

/** The keys of an issuer at a certain time. A newer set is another object. */
export type KeySet = JWTVerifyGetKey;

/** The source of the keys that verify tokens. Promises reject with ERR_AUTH_UNAVAILABLE. */
export interface KeySource {
  /** Returns undefined if there are no keys that may be used, so that `current` must be awaited. */
  known(): KeySet | undefined;
  current(): Promise<KeySet>;
  /**
   * Called when a token names a key that is not in a set. Resolves with the keys that have been published since, or
   * with undefined if the issuer was asked for this key and does not have it. Rejects if that is unknown, because the
   * token may be valid.
   */
  newer(than: KeySet, keyName: string): Promise<KeySet | undefined>;
}

/** Keys in a file, which is read again after a change. */
export class FileKeys implements KeySource {
  readonly #file: ChangingFile<KeySet>;

  constructor(path: string) {
    this.#file = new ChangingFile(path, (text) => toKeySet(JSON.parse(text)));
  }

  known(): KeySet | undefined {
    try {
      return this.#file.current();
    } catch {
      return undefined;
    }
  }

  async current(): Promise<KeySet> {
    try {
      return this.#file.current();
    } catch (cause) {
      throw unavailable(`the file ${this.#file.path} holds no usable keys`, cause);
    }
  }

  async newer(than: KeySet): Promise<KeySet | undefined> {
    const keys = await this.current();
    return keys === than ? undefined : keys;
  }
}

/** Creates the source of the keys: the configured one, or else the one that the issuer's metadata names. */
export async function createKeySource(
  { issuer, keys }: OAuthConfig,
  createClient: () => Promise<HttpClient>,
  { clock, log }: Deps,
): Promise<KeySource> {
  if (keys.kind === 'file') return new FileKeys(keys.file);
  const fetchJson = createFetchJson(await createClient());
  const fetch = async () => fetchJson(keys.kind === 'url' ? keys.url : await discoverKeys(issuer, fetchJson));
  const source = new RemoteKeys({ fetch, clock, log });
  // Fetching the keys now shows a wrong issuer in the log at once, and the first caller need not wait.
  void source.current().catch(() => undefined);
  return source;
}

/** Keys older than this are fetched again in the background, because an issuer may have withdrawn one. */
const FRESH_MS = 10 * 60_000;
/** Keys older than this are no longer used, even if the issuer cannot be reached. */
const USABLE_MS = 60 * 60_000;
/** Any caller can name a key that does not exist, so unknown keys cause at most one fetch in this time. */
const UNKNOWN_KEY_PAUSE_MS = 30_000;
/** The limits of the two lists of unknown keys' names. Each list keeps the latest names. */
const UNKNOWN_KEYS = { count: 1000, length: 64 * 1024 };
/** No other fetch begins for this long after a failure. */
const FAILURE_PAUSE_MS = 5000;

export interface RemoteKeysOptions {
  /** Fetches the document; rejects with the reason if there is none. */
  readonly fetch: () => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}

type Attempt =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly keys: Promise<KeySet> }
  | { readonly kind: 'failed'; readonly atMs: number; readonly error: BridgeError };

/**
 * Keys behind a URL. One fetch serves all waiting callers; the keys are kept for a while and renewed when an unknown
 * key is named.
 *
 * Callers that invent key names do not affect others. Known keys are used without waiting for a fetch. An unknown key
 * may be new, so its token is finally rejected only after a fetch that began when the name was already known. Until the
 * next fetch is due, the caller is told to try again.
 */
export class RemoteKeys implements KeySource {
  readonly #options: RemoteKeysOptions;
  #known: { readonly keys: KeySet; readonly atMs: number } | undefined;
  #attempt: Attempt = { kind: 'none' };
  /** Unknown keys cause no fetch before this time. */
  #nextLookMs = Number.NEGATIVE_INFINITY;
  /** The names of unknown keys since the last fetch began. */
  #unknown = new RecentNames<true>(UNKNOWN_KEYS);
  /** Keys that were named before the last successful fetch began, and that it did not find. */
  readonly #missing = new RecentNames<true>(UNKNOWN_KEYS);

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  known(): KeySet | undefined {
    const known = this.#known;
    if (known === undefined) return undefined;
    const ageMs = this.#options.clock.now() - known.atMs;
    if (ageMs >= USABLE_MS) return undefined;
    // The failure is logged in `#fetch`; the next caller tries again.
    if (ageMs >= FRESH_MS) this.#renew().catch(() => undefined);
    return known.keys;
  }

  async current(): Promise<KeySet> {
    return this.known() ?? this.#renew();
  }

  async newer(than: KeySet, keyName: string): Promise<KeySet | undefined> {
    if (this.#known !== undefined && this.#known.keys !== than) return this.#known.keys;
    const nowMs = this.#options.clock.now();
    const leftMs = this.#attempt.kind === 'running' ? 0 : this.#nextLookMs - nowMs;
    if (leftMs > 0 && this.#missing.has(keyName)) return undefined;
    this.#unknown.set(keyName, true);
    if (leftMs > 0) throw notYet(leftMs);
    return this.#renew(UNKNOWN_KEY_PAUSE_MS);
  }

  /**
   * Fetches the keys, unless a fetch is in progress or has just failed. For `pauseMs` after the fetch begins, unknown
   * keys cause no further fetch.
   */
  async #renew(pauseMs = 0): Promise<KeySet> {
    const { clock } = this.#options;
    if (this.#attempt.kind === 'running') return this.#attempt.keys;
    if (this.#attempt.kind === 'failed' && clock.now() - this.#attempt.atMs < FAILURE_PAUSE_MS)
      throw this.#attempt.error;
    const keys = this.#fetch();
    this.#attempt = { kind: 'running', keys };
    this.#nextLookMs = Math.max(this.#nextLookMs, clock.now() + pauseMs);
    return keys;
  }

  async #fetch(): Promise<KeySet> {
    const { fetch, clock, log } = this.#options;
    const askedFor = this.#unknown;
    this.#unknown = new RecentNames(UNKNOWN_KEYS);
    try {
      const keys = toKeySet(await fetch());
      this.#known = { keys, atMs: clock.now() };
      this.#attempt = { kind: 'none' };
      for (const [name] of askedFor) this.#missing.set(name, true);
      return keys;
    } catch (cause) {
      const reason = cause instanceof BridgeError ? cause.message : 'the document is no set of keys';
      log.warn(`The issuer's keys cannot be fetched: ${reason}`);
      const error = unavailable("the issuer's keys cannot be fetched now", cause);
      this.#attempt = { kind: 'failed', atMs: clock.now(), error };
      // The fetch says nothing about any key, so FAILURE_PAUSE_MS, which is shorter, applies.
      this.#nextLookMs = Number.NEGATIVE_INFINITY;
      for (const [name] of askedFor) this.#unknown.set(name, true);
      throw error;
    }
  }
}

/** Throws the error of the library. */
function toKeySet(document: unknown): KeySet {
  return createLocalJWKSet(document as JSONWebKeySet);
}

function unavailable(reason: string, cause: unknown): BridgeError {
  const message = `No token can be checked: ${reason}. Try again later.`;
  return new BridgeError('ERR_AUTH_UNAVAILABLE', message, { cause, retryAfterMs: FAILURE_PAUSE_MS });
}

function notYet(retryAfterMs: number): BridgeError {
  const message =
    "The token names a key that is not known here (yet), and the issuer's keys were fetched a moment ago; they are fetched again soon. Try again later.";
  return new BridgeError('ERR_AUTH_UNAVAILABLE', message, { retryAfterMs });
}
