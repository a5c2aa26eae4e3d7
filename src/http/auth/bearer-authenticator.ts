import type { IncomingMessage } from 'node:http';
import type { AuthConfig, OAuthConfig } from '../../config/access.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, type ErrorCode } from '../../errors.ts';
import type { HttpClient } from '../client/client.ts';
import { presentedToken } from './caller-token.ts';
import type { Authenticator, AuthRefusal, AuthVerdict } from './callers.ts';
import type { JwtOutcome, JwtVerifier } from './jwt-verifier.ts';
import { TokenTable } from './token-table.ts';

export interface BearerAuthenticatorOptions extends TokenChecks {
  /** The audiences for which tokens of the issuer are accepted. */
  readonly audiences: readonly string[];
  readonly hintsFor: (request: IncomingMessage) => TokenHints;
}

/**
 * Identifies callers by a bearer token in the `Authorization` header, the only place where one is accepted. [RFC 6750
 * 2.1]
 */
export class BearerAuthenticator implements Authenticator {
  readonly #options: BearerAuthenticatorOptions;

  constructor(options: BearerAuthenticatorOptions) {
    this.#options = options;
  }

  authenticate(request: IncomingMessage, decided: (verdict: AuthVerdict) => void): void {
    const { tokens, jwt, audiences, hintsFor } = this.#options;
    const settle = (outcome: JwtOutcome | RefusalCause): void =>
      decided(
        outcome.kind === 'principal' ? outcome : { kind: 'refused', refusal: refuse(outcome, hintsFor(request)) },
      );
    if (hasTokenInQuery(request)) return settle(IN_QUERY);
    const token = presentedToken(request);
    if (token === undefined) return settle({ kind: 'missing' });
    const principal = tokens.find(token);
    if (principal !== undefined) return settle({ kind: 'principal', principal });
    jwt.verify(token, audiences, settle);
  }
}

/** The verifier without an issuer: only tokens that the user has handed out are accepted. */
export const WITHOUT_ISSUER: JwtVerifier = {
  verify: (_token, _audiences, done) => done({ kind: 'invalid', reason: 'it is none of the tokens known here' }),
};

/**
 * [spec 2025-11-25 basic/authorization#token-requirements] A token in the URL is rejected, because URLs end up in logs
 * and histories.
 */
const IN_QUERY: RefusalCause = {
  kind: 'malformed',
  reason: 'A token must not be part of the URL, which is logged in many places; send it in the header Authorization.',
};

function hasTokenInQuery({ url = '' }: IncomingMessage): boolean {
  const mark = url.indexOf('?');
  // Most requests have no query, so parsing is skipped for them. Names in a query may be escaped, so a query is parsed.
  return mark >= 0 && new URLSearchParams(url.slice(mark + 1)).has('access_token');
}

export interface TokenChecksRequest {
  readonly auth: AuthConfig;
  /** Creates the client that fetches the issuer's keys. Called only if the keys are behind a URL. */
  readonly createClient: () => Promise<HttpClient>;
  readonly deps: Deps;
}

/** The checks for the tokens that are accepted here, the same for all servers. */
export interface TokenChecks {
  readonly tokens: TokenTable;
  readonly jwt: JwtVerifier;
}

/** Creates the checks that the user has configured. An unreachable issuer does not prevent the start. */
export async function createTokenChecks(request: TokenChecksRequest): Promise<TokenChecks> {
  const { auth, deps } = request;
  const jwt = auth.oauth === undefined ? WITHOUT_ISSUER : await createVerifier(auth.oauth, request);
  return { tokens: new TokenTable(auth.tokens, deps.log), jwt };
}

/** Loads the JWT library only if it is needed: most runs have no OAuth, and loading takes time and memory. */
async function createVerifier(oauth: OAuthConfig, { createClient, deps }: TokenChecksRequest): Promise<JwtVerifier> {
  const [{ createJwtVerifier }, { createKeySource }] = await Promise.all([
    import('./jwt-verifier.ts'),
    import('./key-source.ts'),
  ]);
  const keys = await createKeySource(oauth, createClient, deps);
  const { issuer, scopes } = oauth;
  return createJwtVerifier({ issuer, scopes, keys, clock: deps.clock });
}

/** The information that a client needs to obtain an accepted token. */
export interface TokenHints {
  /** The URL of the protected resource metadata; undefined if tokens are handed out by hand. [RFC 9728 5.1] */
  readonly resourceMetadata: string | undefined;
  /** The scopes that a token needs, all of them. */
  readonly scopes: readonly string[];
}

/**
 * The cause of a refusal. The reasons end up in the client's log. `malformed` means that the request is wrong, whatever
 * its token.
 */
export type RefusalCause =
  | { readonly kind: 'missing' }
  | { readonly kind: 'malformed'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'scope' }
  | { readonly kind: 'unavailable'; readonly error: BridgeError };

const CODES = {
  missing: 'ERR_AUTH_REQUIRED',
  malformed: 'ERR_AUTH_REQUEST',
  invalid: 'ERR_AUTH_TOKEN',
  scope: 'ERR_AUTH_SCOPE',
} as const satisfies Record<string, ErrorCode>;

/** [RFC 6750 3.1] The challenge to a caller without a token has no error code. */
const RFC_ERRORS = {
  missing: undefined,
  malformed: 'invalid_request',
  invalid: 'invalid_token',
  scope: 'insufficient_scope',
} as const;

export function refuse(cause: RefusalCause, hints: TokenHints): AuthRefusal {
  if (cause.kind === 'unavailable') return { error: cause.error, challenge: undefined };
  const message = describe(cause, hints);
  return { error: new BridgeError(CODES[cause.kind], message), challenge: renderChallenge(cause, hints) };
}

function describe(cause: Exclude<RefusalCause, { kind: 'unavailable' }>, { scopes }: TokenHints): string {
  switch (cause.kind) {
    case 'missing':
      return 'Only known callers are served here; send a token in the header Authorization: Bearer <token>.';
    case 'malformed':
      return cause.reason;
    case 'invalid':
      return `The token is not accepted: ${cause.reason}.`;
    case 'scope':
      return `The token lacks a scope; required: ${scopes.join(' ')}.`;
  }
}

/**
 * [spec 2025-11-25 basic/authorization#protected-resource-metadata-discovery-requirements] Every challenge contains the
 * scopes, so that a client requests the right ones at once.
 */
function renderChallenge(cause: RefusalCause & { kind: keyof typeof CODES }, hints: TokenHints): string {
  const error = RFC_ERRORS[cause.kind];
  const parameters = [
    ...(error === undefined ? [] : [`error=${quote(error)}`]),
    ...('reason' in cause ? [`error_description=${quote(cause.reason)}`] : []),
    ...(hints.scopes.length === 0 ? [] : [`scope=${quote(hints.scopes.join(' '))}`]),
    ...(hints.resourceMetadata === undefined ? [] : [`resource_metadata=${quote(hints.resourceMetadata)}`]),
  ];
  return ['Bearer', parameters.join(', ')].join(' ').trimEnd();
}

/** Quotes a value. [RFC 6750 3] allows fewer characters in these values than a quoted string could contain. */
function quote(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]|["\\]/g, '')}"`;
}
