import { useConfigured } from '../client-identity.ts';
import { loginError } from '../login-error.ts';
import { OFFLINE_ACCESS } from '../scopes.ts';
import { requestOwnTokens } from '../token-requests.ts';
import { conclude, contextOf, type Grant, type GrantRequest } from './grant.ts';

/** Logs the client in with its own name. */
export const logInAsItself: Grant = async (request) => {
  const { config, authorizationServer, previous } = request;
  if (config.client === undefined)
    throw loginError('A client with a name of its own is needed', 'Give --oauth-client-id.');
  const client = useConfigured(config.client, authorizationServer, previous);
  const scopes = request.scopes.filter((scope) => scope !== OFFLINE_ACCESS);
  const own: GrantRequest = { ...request, scopes };
  return conclude(own, client, await requestOwnTokens(contextOf(own, client), scopes));
};
