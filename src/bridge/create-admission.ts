import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { HttpRoute } from '../downstream/listener/http-server.ts';
import { BridgeError } from '../errors.ts';
import { createAuthenticator } from '../http/auth/bearer-authenticator.ts';
import { Callers } from '../http/auth/callers.ts';
import { ProtectedResource } from '../http/auth/protected-resource.ts';
import type { HttpClient } from '../http/client/client.ts';
import { respondError, respondJson } from '../http/server/respond.ts';
import { CLIENT_INFO } from '../version.ts';

/** Creates what decides whose requests are served: the authentication of callers, and the routes that describe it. */
export async function createAdmission(config: Config, deps: Deps) {
  const { listen, endpoints, access } = config;
  const oauth = access.auth?.oauth;
  const scheme = listen.tls === undefined ? 'http' : 'https';
  const resource = oauth === undefined ? undefined : new ProtectedResource({ ...oauth, endpoints, scheme });
  let client: HttpClient | undefined;
  const createClient = async (): Promise<HttpClient> => {
    const { HttpClient } = await import('../http/client/client.ts');
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

/** Where clients learn who hands out tokens for this server. Nobody needs one to read that. [RFC 9728 3.1] */
export function metadataRoutes(resource: ProtectedResource): ReadonlyMap<string, HttpRoute> {
  return new Map(resource.paths.map((path) => [path, routeOf(resource, path)]));
}

function routeOf(resource: ProtectedResource, path: string): HttpRoute {
  return (request, response) => {
    if (request.method === 'GET') return respondJson(response, 200, resource.describe(path, request));
    const error = new BridgeError('ERR_HTTP_METHOD', 'Only GET is served here.');
    respondError(response, error, undefined, { Allow: 'GET' });
  };
}
