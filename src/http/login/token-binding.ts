/** Binds tokens to a key, and creates the proofs that the bridge holds it. [RFC 9449] */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Deps } from '../../deps.ts';
import { ProofKey } from './proof-key.ts';

/** [RFC 9449 8.1] */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
/** A nonce is sent with every request, and common servers accept 8 KiB of headers, most of which the token needs. */
const MAX_NONCE_LENGTH = 2048;
/** Limit on the origins with a nonce. A server or an authorization server usually has one or two. */
const MAX_ORIGINS = 8;
/** Servers accept proofs that are a few minutes old; some accept only those of the last minute. */
const MAX_SKEW_MS = 60_000;

export interface BindingOptions {
  /** Undefined if no server has asked for proofs so far. */
  readonly key: ProofKey | undefined;
  /** The algorithm for a new key; undefined if no key can be created. */
  readonly algorithm: string | undefined;
  /** True if the server would refuse a token that is not bound to a key. */
  readonly isRequired: boolean;
  readonly deps: Pick<Deps, 'wallClock' | 'randomId'>;
}

/**
 * The key of a login, and the nonces of one receiver of proofs: the server or its authorization server. Each of the two
 * has its own nonces, and so its own object.
 */
export class TokenBinding {
  readonly isRequired: boolean;
  readonly #algorithm: string | undefined;
  readonly #deps: BindingOptions['deps'];
  /** The latest nonce of each origin. */
  readonly #nonces = new Map<string, string>();
  #key: ProofKey | undefined;

  constructor({ key, algorithm, isRequired, deps }: BindingOptions) {
    this.isRequired = isRequired;
    this.#algorithm = algorithm;
    this.#deps = deps;
    this.#key = key;
  }

  get key(): ProofKey | undefined {
    return this.#key;
  }

  /** Creates a key if there is none. Resolves with false if no key can be created. */
  async begin(): Promise<boolean> {
    if (this.#key === undefined && this.#algorithm !== undefined) this.#key = await ProofKey.create(this.#algorithm);
    return this.#key !== undefined;
  }

  /**
   * Creates a proof for one request, because each proof can be used only once. Returns undefined if there is no key.
   * @param token the access token that is sent with the proof
   */
  prove(method: string, { origin, pathname }: URL, token?: string): string | undefined {
    const nonce = this.#nonces.get(origin);
    return this.#key?.sign({
      jti: this.#deps.randomId(),
      htm: method,
      htu: `${origin}${pathname}`,
      iat: Math.floor(this.#deps.wallClock() / 1000),
      ...(token !== undefined && { ath: createHash('sha256').update(token).digest('base64url') }),
      ...(nonce !== undefined && { nonce }),
    });
  }

  /** Stores the nonce of an answer for the next proofs. Returns true if the answer has one. [RFC 9449 8.2] */
  hear({ origin }: URL, { 'dpop-nonce': nonce }: IncomingHttpHeaders): boolean {
    if (typeof nonce !== 'string' || nonce.length > MAX_NONCE_LENGTH || !NONCE.test(nonce)) return false;
    if (this.#nonces.size >= MAX_ORIGINS && !this.#nonces.has(origin)) return false;
    this.#nonces.set(origin, nonce);
    return true;
  }

  /** Returns the way out if a proof is refused. */
  advise(date: string | null | undefined): string {
    const skewMs = Date.parse(date ?? '') - this.#deps.wallClock();
    if (!(Math.abs(skewMs) > MAX_SKEW_MS))
      return 'If that lasts, log in once with --login anew, or tell its operators.';
    const side = skewMs > 0 ? 'behind' : 'ahead of';
    const minutes = Math.round(Math.abs(skewMs) / 60_000);
    return `The clock of this machine is ${minutes} min ${side} that of the server, and proofs say when they were made: set it right.`;
  }
}
