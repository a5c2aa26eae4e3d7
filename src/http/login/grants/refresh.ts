import type { StoredLogin } from '../login-store.ts';
import { refreshTokens } from '../token-requests.ts';
import { contextOf, type GrantRequest, type LoginSurroundings } from './grant.ts';

/** Renews a login. Undefined: the refresh token is no good any more. Rejects with a BridgeError. */
export async function refreshLogin(
  request: Pick<LoginSurroundings, 'config' | 'fetch' | 'deps'> & Pick<GrantRequest, 'registrationFailed'>,
  login: StoredLogin,
  refreshToken: string,
): Promise<StoredLogin | undefined> {
  const { issuer, tokenEndpoint, client, resource } = login;
  const authorizationServer = { issuer, token_endpoint: tokenEndpoint };
  const context = contextOf({ ...request, authorizationServer, parameters: { resource, extra: new Map() } }, client);
  const answer = await refreshTokens(context, refreshToken, login.tokens?.scopes);
  if (answer.kind === 'refused') {
    request.deps.log.debug({ issuer }, `the login cannot be refreshed: ${answer.reason}`);
    if (answer.isClientUnknown && client.origin === 'registered') request.registrationFailed(client.id);
    return undefined;
  }
  // [RFC 6749 6] Without a new one the old one stays.
  const tokens = { ...answer.tokens, refreshToken: answer.tokens.refreshToken ?? refreshToken };
  return { ...login, tokens };
}
