import type { StoredLogin } from '../login-store.ts';
import { TokenBinding } from '../token-binding.ts';
import { refreshTokens } from '../token-requests.ts';
import { contextOf, type GrantRequest, type LoginSurroundings } from './grant.ts';

/** Renews a login. Resolves with undefined if the refresh token is no longer valid. Rejects with a BridgeError. */
export async function refreshLogin(
  request: Pick<LoginSurroundings, 'config' | 'fetch' | 'deps'> & Pick<GrantRequest, 'registrationFailed'>,
  login: StoredLogin,
  refreshToken: string,
): Promise<StoredLogin | undefined> {
  const { issuer, tokenEndpoint, client, resource, tokens: former } = login;
  const authorizationServer = { issuer, token_endpoint: tokenEndpoint };
  const { deps } = request;
  // [RFC 9449 5] The refresh token is bound to the same key. No other key can be created without metadata.
  const binding = new TokenBinding({ key: former?.key, algorithm: undefined, isRequired: false, deps });
  const parameters = { resource, extra: new Map(), binding };
  const context = contextOf({ ...request, authorizationServer, parameters }, client);
  const answer = await refreshTokens(context, refreshToken, former?.scopes);
  if (answer.kind === 'refused') {
    deps.log.debug({ issuer }, `the login cannot be refreshed: ${answer.reason}`);
    if (answer.isClientUnknown && client.origin === 'registered') request.registrationFailed(client.id);
    return undefined;
  }
  // [RFC 6749 6] If the answer has no new refresh token, the old one stays valid.
  const tokens = { ...answer.tokens, refreshToken: answer.tokens.refreshToken ?? refreshToken };
  return { ...login, tokens };
}
