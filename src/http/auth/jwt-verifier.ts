import { createHash } from 'node:crypto';
import { errors, type JWTPayload, jwtVerify } from 'jose';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { JwtOutcome, JwtVerifier } from './jwt-outcome.ts';
import type { KeySet, KeySource } from './key-source.ts';

/**
 * Signatures of a public key only. With a shared secret (HS256) whoever can check tokens could make them, and a public
 * key could be passed off as the secret; `none` is no signature at all. [RFC 8725 3.1, 3.2]
 */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Clocks of two machines differ by seconds. */
const CLOCK_TOLERANCE_S = 30;
/** A token that was good stays good for this long without being looked at: withdrawn keys must be noticed. */
const REMEMBERED_MS = 60_000;
/** About a quarter of a megabyte. */
const MAX_REMEMBERED = 1000;
/** Requests that wait for an issuer's keys; more would only wait as well, and hold memory. */
const MAX_WAITING = 1000;

export interface JwtVerifierOptions {
  readonly issuer: string;
  /** What a token must be made for; one of them is enough. */
  readonly audiences: readonly string[];
  /** What a token must allow; all of them. */
  readonly scopes: readonly string[];
  readonly keys: KeySource;
  readonly clock: Clock;
}

/** [RFC 7515 7.1] Three parts in base64url, none of them empty. */
const SIGNED_JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const NO_JWT = 'it is neither a token known here nor a JWT that can be checked';

interface Remembered {
  readonly outcome: JwtOutcome;
  readonly untilMs: number;
}

/** [spec 2025-11-25 basic/authorization#token-handling] Access tokens as JWTs of one issuer. [RFC 9068 4] */
export function createJwtVerifier(options: JwtVerifierOptions): JwtVerifier {
  return new IssuerTokens(options);
}

class IssuerTokens implements JwtVerifier {
  readonly #options: JwtVerifierOptions;
  /** By the digest of the token; the oldest first. */
  readonly #remembered = new Map<string, Remembered>();
  #waiting = 0;

  constructor(options: JwtVerifierOptions) {
    this.#options = options;
  }

  verify(token: string, done: (outcome: JwtOutcome) => void): void {
    // Nobody needs keys, nor has to wait for them, to see that this is none.
    if (!SIGNED_JWT.test(token)) return done({ kind: 'invalid', reason: NO_JWT });
    const digest = createHash('sha256').update(token).digest('base64');
    const remembered = this.#remembered.get(digest);
    if (remembered !== undefined && this.#options.clock.now() < remembered.untilMs) return done(remembered.outcome);
    if (this.#waiting >= MAX_WAITING) return done({ kind: 'unavailable', error: tooMany() });
    this.#waiting += 1;
    void this.#check(token, digest)
      .catch((thrown: unknown) => classify(thrown))
      .then((outcome) => {
        this.#waiting -= 1;
        done(outcome);
      });
  }

  async #check(token: string, digest: string): Promise<JwtOutcome> {
    const { issuer, scopes, clock } = this.#options;
    const payload = await this.#verifySignature(token);
    // [RFC 9068 2.2] Without a subject there is nobody to bind a session to. As text, what is none could be another's name.
    if (typeof payload.sub !== 'string' || payload.sub === '')
      return { kind: 'invalid', reason: 'it names no subject (sub)' };
    const granted = scopesOf(payload);
    const outcome: JwtOutcome = scopes.every((scope) => granted.has(scope))
      ? // An issuer has no fragment [RFC 8414 2], so two callers never come to the same text.
        { kind: 'principal', principal: `${issuer}#${payload.sub}` }
      : { kind: 'scope' };
    const leftMs = (payload.exp ?? 0) * 1000 - Date.now();
    this.#remember(digest, { outcome, untilMs: clock.now() + Math.min(leftMs, REMEMBERED_MS) });
    return outcome;
  }

  async #verifySignature(token: string): Promise<JWTPayload> {
    const { keys } = this.#options;
    const known = await keys.current();
    try {
      return await this.#verifyWith(known, token);
    } catch (thrown) {
      if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
      // The issuer may have changed its keys since.
      const newer = await keys.newer(known);
      if (newer === undefined) throw thrown;
      return await this.#verifyWith(newer, token);
    }
  }

  async #verifyWith(keys: KeySet, token: string): Promise<JWTPayload> {
    const { issuer, audiences } = this.#options;
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: [...audiences],
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ['exp'],
    });
    return payload;
  }

  #remember(digest: string, remembered: Remembered): void {
    this.#remembered.delete(digest);
    this.#remembered.set(digest, remembered);
    if (this.#remembered.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#remembered.keys();
    if (oldest !== undefined) this.#remembered.delete(oldest);
  }
}

/** [RFC 8693 4.2] `scope` is text with spaces; some issuers write `scp`, as text or as a list. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<string> {
  const named = scope ?? scp;
  if (typeof named === 'string') return new Set(named.split(' '));
  return new Set(Array.isArray(named) ? named.filter((one) => typeof one === 'string') : []);
}

/** Nothing of the token itself goes into a reason. */
function classify(thrown: unknown): JwtOutcome {
  if (thrown instanceof BridgeError) return { kind: 'unavailable', error: thrown };
  return { kind: 'invalid', reason: reasonOf(thrown) };
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return 'it has expired';
  if (thrown instanceof errors.JWTClaimValidationFailed) return CLAIM_REASONS[thrown.claim] ?? 'a claim of it is wrong';
  if (thrown instanceof errors.JWKSNoMatchingKey) return 'the issuer has no such key';
  if (thrown instanceof errors.JWKSMultipleMatchingKeys)
    return 'the issuer has several such keys, and it must name one';
  if (thrown instanceof errors.JOSEAlgNotAllowed) return 'it is signed by an algorithm that is not allowed';
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong';
  // Anything else that the library knows is wrong with the token. What it does not know comes from the key.
  return thrown instanceof errors.JOSEError ? NO_JWT : 'the key of the issuer that it names cannot be used';
}

const CLAIM_REASONS: Readonly<Record<string, string>> = {
  iss: 'it is of another issuer',
  aud: 'it is made for another audience',
  exp: 'it has no time of expiry',
  nbf: 'it is not valid yet',
};

function tooMany(): BridgeError {
  const message = 'Too many requests wait for the keys of the issuer; try again later.';
  return new BridgeError('ERR_AUTH_UNAVAILABLE', message, { retryAfterMs: 1000 });
}
