import { createHash } from 'node:crypto';
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, type ProtectedHeaderParameters } from 'jose';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { CLOCK_TOLERANCE_S, principalOf, scopesOf } from './caller-token.ts';
import type { KeySet, KeySource } from './key-source.ts';

/**
 * - `principal`: the token is accepted.
 * - `invalid`: the caller has to get another token.
 * - `scope`: the token is valid, but lacks a scope.
 * - `unavailable`: the token cannot be checked now, so it is not accepted.
 */
export type JwtOutcome =
  | { readonly kind: 'principal'; readonly principal: string }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'scope' }
  | { readonly kind: 'unavailable'; readonly error: BridgeError };

export interface JwtVerifier {
  /**
   * Calls `done` once; for a token that was verified a moment ago, this happens before the method returns. The token
   * must be issued for one of these audiences.
   */
  verify(token: string, audiences: readonly string[], done: (outcome: JwtOutcome) => void): void;
}

/**
 * Only signatures with a public key are accepted. With a shared secret (HS256), anybody who can check tokens could
 * create them, and a public key could be passed off as the secret; `none` is no signature at all. [RFC 8725 3.1, 3.2]
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
/**
 * A valid token is remembered for this long without another check. The time is short, so that withdrawn keys take
 * effect.
 */
const REMEMBERED_MS = 60_000;
/** Limit on remembered tokens, which then take about a quarter of a megabyte. */
const MAX_REMEMBERED = 1000;
/** Limit on requests that wait for an issuer's keys. Further requests would only wait as well, and use memory. */
const MAX_WAITING = 1000;
/** Limit on signatures being checked at the same time, because each occupies a thread of the pool for a while. */
const MAX_CHECKING = 1000;
/**
 * [RFC 9068 2.1] `at+jwt` is an access token. Many issuers write `JWT` or nothing, also in their ID tokens; see
 * `isOfAnotherKind`. Tokens of other types (`logout+jwt`, `dpop+jwt`, `secevent+jwt`) do not authorize calls.
 */
const ACCESS_TOKEN_TYPES: readonly unknown[] = ['at+jwt', 'application/at+jwt'];
const UNTOLD_TYPES: readonly unknown[] = ['jwt', 'application/jwt', undefined];
/**
 * Claims that access tokens do not have. The first three belong to ID tokens [OpenID Connect Core 2, 3.3.2.11], the
 * last one to events. [RFC 8417 2.2]
 */
const CLAIMS_OF_OTHER_KINDS = ['nonce', 'at_hash', 'c_hash', 'events'];

export interface JwtVerifierOptions {
  readonly issuer: string;
  /** The scopes that a token must have, all of them. */
  readonly scopes: readonly string[];
  readonly keys: KeySource;
  readonly clock: Clock;
}

/** [RFC 7515 7.1] Three parts in base64url, none of which is empty. */
const SIGNED_JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const NO_JWT = 'it is neither a token known here nor a JWT that can be checked';

/** The result for a token that the issuer has signed. `outcome` applies if one of `audiences` is accepted. */
interface Checked {
  readonly outcome: JwtOutcome;
  readonly audiences: readonly string[];
}

interface Remembered extends Checked {
  readonly untilMs: number;
}

/**
 * Creates a verifier for access tokens that are JWTs of one issuer. [spec 2025-11-25
 * basic/authorization#token-handling, RFC 9068 4]
 */
export function createJwtVerifier(options: JwtVerifierOptions): JwtVerifier {
  return new IssuerTokens(options);
}

class IssuerTokens implements JwtVerifier {
  readonly #options: JwtVerifierOptions;
  /** Results by the digest of the token, oldest first. */
  readonly #remembered = new Map<string, Remembered>();
  /**
   * `#waiting` and `#checking` are counted separately, so that requests that wait for keys do not block those whose
   * keys are known.
   */
  readonly #waiting = new Slots(MAX_WAITING);
  readonly #checking = new Slots(MAX_CHECKING);

  constructor(options: JwtVerifierOptions) {
    this.#options = options;
  }

  verify(token: string, audiences: readonly string[], done: (outcome: JwtOutcome) => void): void {
    // A text that is not a JWT is rejected without keys, and without waiting for them.
    if (!SIGNED_JWT.test(token)) return done({ kind: 'invalid', reason: NO_JWT });
    const digest = createHash('sha256').update(token).digest('base64');
    const remembered = this.#remembered.get(digest);
    if (remembered !== undefined && this.#options.clock.now() < remembered.untilMs)
      return done(outcomeFor(audiences, remembered));
    void this.#check(token, digest)
      .then((checked) => outcomeFor(audiences, checked))
      .catch((thrown: unknown) => classify(thrown))
      .then(done);
  }

  /** Checks a token, except for its audience. Rejects with the fault if the token is invalid for every audience. */
  async #check(token: string, digest: string): Promise<Checked> {
    const { issuer, scopes, clock } = this.#options;
    const header = readHeader(token);
    if (header === undefined) throw new Unacceptable(NO_JWT);
    const type = typeof header.typ === 'string' ? header.typ.toLowerCase() : header.typ;
    const isAccessToken = ACCESS_TOKEN_TYPES.includes(type);
    if (!isAccessToken && !UNTOLD_TYPES.includes(type)) throw new Unacceptable(WRONG_TYPE);
    const payload = await this.#verifySignature(token, `${header.alg} ${header.kid}`);
    if (!isAccessToken && isOfAnotherKind(payload)) throw new Unacceptable(OTHER_KIND);
    // [RFC 7800 3.1] A stolen token that is bound to a key must not be usable without the key.
    if (payload.cnf !== undefined) throw new Unacceptable(BOUND);
    // [RFC 9068 2.2] A session is bound to a subject, so there must be one. A subject that is not text is rejected,
    // because as text it could equal another subject.
    if (typeof payload.sub !== 'string' || payload.sub === '') throw new Unacceptable('it names no subject (sub)');
    // This character separates the name of a caller from what is added to it, and no name may look like one with more.
    if (payload.sub.includes('\0')) throw new Unacceptable('its subject (sub) has a character with the code 0');
    const granted = scopesOf(payload);
    const outcome: JwtOutcome = scopes.every((scope) => granted.has(scope))
      ? { kind: 'principal', principal: principalOf(issuer, payload.sub) }
      : { kind: 'scope' };
    const leftMs = (payload.exp ?? 0) * 1000 - Date.now();
    const checked = { outcome, audiences: audiencesOf(payload) };
    this.#remember(digest, { ...checked, untilMs: clock.now() + Math.min(leftMs, REMEMBERED_MS) });
    return checked;
  }

  async #verifySignature(token: string, keyName: string): Promise<JWTPayload> {
    const source = this.#options.keys;
    let keys = source.known() ?? (await this.#waiting.hold(() => source.current()));
    for (;;) {
      const tried = keys;
      try {
        return await this.#checking.hold(() => this.#verifyWith(tried, token));
      } catch (thrown) {
        if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
        // The issuer may have changed its keys meanwhile.
        const newer = await this.#waiting.hold(() => source.newer(tried, keyName));
        if (newer === undefined) throw thrown;
        keys = newer;
      }
    }
  }

  async #verifyWith(keys: KeySet, token: string): Promise<JWTPayload> {
    const { issuer } = this.#options;
    const { payload } = await jwtVerify(token, keys, {
      issuer,
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

/** The fault of a token that has a valid signature. */
class Unacceptable extends Error {}

function outcomeFor(audiences: readonly string[], { outcome, audiences: made }: Checked): JwtOutcome {
  if (made.some((audience) => audiences.includes(audience))) return outcome;
  return { kind: 'invalid', reason: 'it is made for another audience' };
}

/** [RFC 7519 4.1.3] */
function audiencesOf({ aud = [] }: JWTPayload): readonly string[] {
  const all: unknown = aud;
  return (Array.isArray(all) ? all : [all]).filter((audience) => typeof audience === 'string');
}

/** Limits how many operations run at a time; further ones are rejected. */
class Slots {
  readonly #count: number;
  #taken = 0;

  constructor(count: number) {
    this.#count = count;
  }

  async hold<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.#taken >= this.#count) throw tooMany();
    this.#taken += 1;
    try {
      return await run();
    } finally {
      this.#taken -= 1;
    }
  }
}

/** Decodes the header without checking it. */
function readHeader(token: string): ProtectedHeaderParameters | undefined {
  try {
    return decodeProtectedHeader(token);
  } catch {
    return undefined;
  }
}

/**
 * True for ID tokens and events. Some issuers name the kind of a token in their own claim: Keycloak in `typ`, Cognito
 * in `token_use`.
 */
function isOfAnotherKind(payload: JWTPayload): boolean {
  if (CLAIMS_OF_OTHER_KINDS.some((claim) => payload[claim] !== undefined)) return true;
  return payload.typ === 'ID' || payload.token_use === 'id';
}

const WRONG_TYPE = 'its type (typ) is not that of an access token; expected at+jwt, JWT or none';
const OTHER_KIND = 'it is an ID token or an event by its claims, and an access token is needed';
const BOUND = 'it is bound to a key (cnf), whose proof is not checked here; a plain bearer token is needed';

/** Converts an error into an outcome. No part of the token appears in a reason. */
function classify(thrown: unknown): JwtOutcome {
  if (thrown instanceof BridgeError) return { kind: 'unavailable', error: thrown };
  return { kind: 'invalid', reason: thrown instanceof Unacceptable ? thrown.message : reasonOf(thrown) };
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return 'it has expired';
  if (thrown instanceof errors.JWTClaimValidationFailed) return CLAIM_REASONS[thrown.claim] ?? 'a claim of it is wrong';
  if (thrown instanceof errors.JWKSNoMatchingKey) return 'the issuer has no such key';
  if (thrown instanceof errors.JWKSMultipleMatchingKeys)
    return 'the issuer has several such keys, and it must name one';
  if (thrown instanceof errors.JOSEAlgNotAllowed) return 'it is signed by an algorithm that is not allowed';
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong';
  // Other errors of the library are faults of the token. Errors of other origin are faults of the key.
  return thrown instanceof errors.JOSEError ? NO_JWT : 'the key of the issuer that it names cannot be used';
}

const CLAIM_REASONS: Readonly<Record<string, string>> = {
  iss: 'it is of another issuer',
  exp: 'it has no time of expiry',
  nbf: 'it is not valid yet',
};

function tooMany(): BridgeError {
  const message = 'Too many requests wait until their tokens can be checked; try again later.';
  return new BridgeError('ERR_AUTH_UNAVAILABLE', message, { retryAfterMs: 1000 });
}
