/** Forgets a login, here and at the authorization server. */
import { revocationRequest } from 'oauth4webapi';
import type { LoginConfig } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import type { HttpClient } from '../client/client.ts';
import { AddressGuard } from './address-guard.ts';
import { quoteOthers } from './login-error.ts';
import { createLoginFetch } from './login-fetch.ts';
import { LoginFile } from './login-storage.ts';
import type { StoredLogin } from './login-store.ts';
import { authenticateAs, optionsFor } from './token-requests.ts';

export interface LogOutRequest {
  readonly server: URL;
  readonly config: LoginConfig;
  /** A client without the headers and credentials of the server. */
  readonly http: HttpClient;
  readonly deps: Deps;
  readonly signal: AbortSignal;
}

/**
 * - `none`: there was no login.
 * - `forgotten`: the login was only deleted, because it names no endpoint for revocation or has no tokens.
 * - `revoked`: the authorization server has revoked the tokens.
 * - `not-revoked`: the authorization server did not revoke the tokens; the login is deleted all the same.
 */
export type LogOutOutcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'forgotten' | 'revoked' | 'not-revoked'; readonly issuer: string };

/** Rejects with the error of the file system if the file cannot be deleted. */
export async function logOut({ server, config, http, deps, signal }: LogOutRequest): Promise<LogOutOutcome> {
  const file = new LoginFile(server, { ...config, stored: 'use' }, deps);
  return file.exclusively(async (): Promise<LogOutOutcome> => {
    const login = file.load();
    if (login === undefined) return { kind: 'none' };
    const issuer = quoteOthers(login.issuer);
    const fetchFrom = (named: URL) => createLoginFetch(http, new AddressGuard(named));
    const isRevoked = await revoke(login, config, fetchFrom(server), deps).catch(() => false);
    const { assertion } = config;
    if (login.identity !== undefined && assertion?.kind === 'identity-provider') {
      const there: LoginConfig = { ...config, client: assertion.client, token: 'id' };
      await revoke(login.identity, there, fetchFrom(new URL(assertion.issuer)), deps).catch(() => false);
    }
    await file.forget();
    if (login.revocationEndpoint === undefined || login.tokens === undefined) return { kind: 'forgotten', issuer };
    return { kind: isRevoked ? 'revoked' : 'not-revoked', issuer };
  }, signal);
}

/** [RFC 7009] Revoking the refresh token should revoke the access token as well, but not every server does that. */
async function revoke(
  { issuer, tokenEndpoint, revocationEndpoint, client, resource, tokens }: StoredLogin,
  config: LoginConfig,
  fetch: ReturnType<typeof createLoginFetch>,
  { wallClock }: Deps,
): Promise<boolean> {
  if (revocationEndpoint === undefined || tokens === undefined) return false;
  const authorizationServer = { issuer, token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint };
  const context = {
    ...{ authorizationServer, client, proof: config.client?.proof, token: config.token, fetch, wallClock },
    parameters: { resource, extra: new Map(), binding: undefined },
  };
  // [RFC 7009 2.1] An ID token cannot be revoked.
  const accessToken = config.token === 'id' ? undefined : tokens.accessToken;
  const hints = { refresh_token: tokens.refreshToken, access_token: accessToken };
  let isRevoked = Object.values(hints).some((token) => token !== undefined);
  for (const [hint, token] of Object.entries(hints)) {
    if (token === undefined) continue;
    const options = { ...optionsFor(context), additionalParameters: { token_type_hint: hint } };
    const auth = await authenticateAs(context);
    const { ok } = await revocationRequest(authorizationServer, { client_id: client.id }, auth, token, options);
    isRevoked &&= ok;
  }
  return isRevoked;
}
