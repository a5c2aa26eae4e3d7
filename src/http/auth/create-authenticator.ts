import type { IncomingMessage } from 'node:http';
import type { AuthConfig, OAuthConfig } from '../../config.ts';
import type { Deps } from '../../deps.ts';
import type { HttpClient } from '../client.ts';
import { type Authenticator, LETS_ANYONE_IN } from './authenticator.ts';
import { BearerAuthenticator } from './bearer-authenticator.ts';
import type { TokenHints } from './challenge.ts';
import type { JwtVerifier } from './jwt-outcome.ts';
import type { ProtectedResource } from './protected-resource.ts';
import { TokenTable } from './token-table.ts';

export interface AuthenticatorRequest {
  /** Undefined: nobody is asked who they are. */
  readonly auth: AuthConfig | undefined;
  /** Present together with `auth.oauth`. */
  readonly resource: ProtectedResource | undefined;
  /** Makes the way to the issuer's keys; called when they are behind a URL. */
  readonly createClient: () => Promise<HttpClient>;
  readonly deps: Deps;
}

/** The way in as the user configured it. An issuer that cannot be reached now is no reason not to start. */
export async function createAuthenticator(request: AuthenticatorRequest): Promise<Authenticator> {
  const { auth, resource, deps } = request;
  if (auth === undefined) return LETS_ANYONE_IN;
  const { oauth } = auth;
  const hintsFor = (called: IncomingMessage): TokenHints => ({
    resourceMetadata: resource?.urlFor(called),
    scopes: oauth?.scopes ?? [],
  });
  const tokens = new TokenTable(auth.tokens, deps.log);
  const jwt = oauth === undefined ? undefined : await createVerifier(oauth, request);
  return new BearerAuthenticator({ tokens, jwt, hintsFor });
}

/** Loaded where it is used: most runs have no OAuth, and its libraries take time and memory. */
async function createVerifier(oauth: OAuthConfig, { createClient, deps }: AuthenticatorRequest): Promise<JwtVerifier> {
  const [{ createJwtVerifier }, { createKeySource }] = await Promise.all([
    import('./jwt-verifier.ts'),
    import('./key-source.ts'),
  ]);
  const keys = await createKeySource(oauth, createClient, deps);
  const { issuer, audiences, scopes } = oauth;
  return createJwtVerifier({ issuer, audiences, scopes, keys, clock: deps.clock });
}
