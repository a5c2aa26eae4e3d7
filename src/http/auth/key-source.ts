import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import type { OAuthConfig } from '../../config.ts';
import type { Clock, Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { ChangingFile } from '../changing-file.ts';
import type { HttpClient } from '../client.ts';
import { discoverKeys } from './discover-issuer.ts';
import { createFetchJson } from './fetch-json.ts';

/** The issuer's keys at one time; a newer set is another object. */
export type KeySet = JWTVerifyGetKey;

/** Where the keys come from that tokens are signed with. Both reject with ERR_AUTH_UNAVAILABLE. */
export interface KeySource {
  current(): Promise<KeySet>;
  /** Asked when a token names a key that is not there. Undefined: there is nothing newer to be had now. */
  newer(than: KeySet): Promise<KeySet | undefined>;
}

/** Keys in a file, read again when it changes. */
export class FileKeys implements KeySource {
  readonly #file: ChangingFile<KeySet>;

  constructor(path: string) {
    this.#file = new ChangingFile(path, (text) => toKeySet(JSON.parse(text)));
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

/** From wherever the user said, else from where the issuer says. */
export async function createKeySource(
  { issuer, keys }: OAuthConfig,
  createClient: () => Promise<HttpClient>,
  { clock, log }: Deps,
): Promise<KeySource> {
  if (keys.kind === 'file') return new FileKeys(keys.file);
  const fetchJson = createFetchJson(await createClient());
  const fetch = async () => fetchJson(keys.kind === 'url' ? keys.url : await discoverKeys(issuer, fetchJson));
  const source = new RemoteKeys({ fetch, clock, log });
  // A wrong issuer shows in the log at once, and the first caller does not wait.
  void source.current().catch(() => undefined);
  return source;
}

/** After this long keys are fetched again, in the background: an issuer may have withdrawn one. */
const FRESH_MS = 10 * 60_000;
/** An issuer that cannot be reached for this long is not believed any more. */
const USABLE_MS = 60 * 60_000;
/** Anybody can name a key that does not exist; the issuer hears of it this often at most. */
const UNKNOWN_KEY_PAUSE_MS = 30_000;
/** After a failure nobody waits for another one at once. */
const FAILURE_PAUSE_MS = 5000;

export interface RemoteKeysOptions {
  /** The document as fetched; rejects with why there is none. */
  readonly fetch: () => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}

type Attempt =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly keys: Promise<KeySet> }
  | { readonly kind: 'failed'; readonly atMs: number; readonly error: BridgeError };

/** Keys behind a URL, fetched once for all who wait, kept for a while and renewed when an unknown one appears. */
export class RemoteKeys implements KeySource {
  readonly #options: RemoteKeysOptions;
  #known: { readonly keys: KeySet; readonly atMs: number } | undefined;
  #attempt: Attempt = { kind: 'none' };
  #unknownKeyMs = Number.NEGATIVE_INFINITY;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  async current(): Promise<KeySet> {
    const known = this.#known;
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.#options.clock.now() - known.atMs;
    if (known === undefined || ageMs >= USABLE_MS) return this.#renew();
    // Logged where it fails; the next caller tries again.
    if (ageMs >= FRESH_MS) this.#renew().catch(() => undefined);
    return known.keys;
  }

  async newer(than: KeySet): Promise<KeySet | undefined> {
    if (this.#attempt.kind === 'running') return this.#attempt.keys;
    if (this.#known !== undefined && this.#known.keys !== than) return this.#known.keys;
    const nowMs = this.#options.clock.now();
    if (nowMs - this.#unknownKeyMs < UNKNOWN_KEY_PAUSE_MS) return undefined;
    this.#unknownKeyMs = nowMs;
    return this.#renew();
  }

  async #renew(): Promise<KeySet> {
    const { clock } = this.#options;
    if (this.#attempt.kind === 'running') return this.#attempt.keys;
    if (this.#attempt.kind === 'failed' && clock.now() - this.#attempt.atMs < FAILURE_PAUSE_MS)
      throw this.#attempt.error;
    const keys = this.#fetch();
    this.#attempt = { kind: 'running', keys };
    return keys;
  }

  async #fetch(): Promise<KeySet> {
    const { fetch, clock, log } = this.#options;
    try {
      const keys = toKeySet(await fetch());
      this.#known = { keys, atMs: clock.now() };
      this.#attempt = { kind: 'none' };
      return keys;
    } catch (cause) {
      const reason = cause instanceof BridgeError ? cause.message : 'the document is no set of keys';
      log.warn({ reason }, "the issuer's keys cannot be fetched");
      const error = unavailable("the issuer's keys cannot be fetched now", cause);
      this.#attempt = { kind: 'failed', atMs: clock.now(), error };
      throw error;
    }
  }
}

/** Throws what the library says. */
function toKeySet(document: unknown): KeySet {
  return createLocalJWKSet(document as JSONWebKeySet);
}

function unavailable(reason: string, cause: unknown): BridgeError {
  const message = `No token can be checked: ${reason}. Try again later.`;
  return new BridgeError('ERR_AUTH_UNAVAILABLE', message, { cause, retryAfterMs: FAILURE_PAUSE_MS });
}
