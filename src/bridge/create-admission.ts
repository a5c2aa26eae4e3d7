import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { HttpRoute } from '../downstream/http-server.ts';
import { metadataRoutes } from '../downstream/resource-metadata.ts';
import { Callers } from '../http/auth/callers.ts';
import { createAuthenticator } from '../http/auth/create-authenticator.ts';
import { ProtectedResource } from '../http/auth/protected-resource.ts';
import type { HttpClient } from '../http/client.ts';
import { CLIENT_INFO } from './client-info.ts';

/** Creates what decides whose requests are served: the authentication of callers, and the routes that describe it. */
export async function createAdmission(config: Config, deps: Deps) {
  const { listen, endpoints, access } = config;
  const oauth = access.auth?.oauth;
  const scheme = listen.tls === undefined ? 'http' : 'https';
  const resource = oauth === undefined ? undefined : new ProtectedResource({ ...oauth, endpoints, scheme });
  let client: HttpClient | undefined;
  const createClient = async (): Promise<HttpClient> => {
    const { HttpClient } = await import('../http/client.ts');
    const { proxyEnv } = config.remote;
    const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
    client ??= new HttpClient({ ...NO_CREDENTIALS, proxyEnv, userAgent, clock: deps.clock });
    return client;
  };
  const authenticator = await createAuthenticator({ auth: access.auth, resource, createClient, deps });
  const publicRoutes = resource === undefined ? new Map<string, HttpRoute>() : metadataRoutes(resource);
  return { callers: new Callers(authenticator, access.mapHeaders), publicRoutes, close: () => client?.close() };
}

/** An issuer is shown none of the credentials that are for the server. */
const NO_CREDENTIALS = {
  headers: new Map<string, string>(),
  bearerTokenFile: undefined,
  tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
};
