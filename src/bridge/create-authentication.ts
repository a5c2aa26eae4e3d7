import type { HttpListenerConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { HttpRoute } from '../downstream/listener/http-server.ts';
import { BridgeError } from '../errors.ts';
import type { Authenticator } from '../http/auth/authenticator.ts';
import { createAuthenticator } from '../http/auth/bearer-authenticator.ts';
import { ProtectedResource } from '../http/auth/protected-resource.ts';
import type { HttpClient } from '../http/client/client.ts';
import { respondError, respondJson } from '../http/server/respond.ts';
import { CLIENT_INFO } from '../version.ts';

/** How callers show who they are. */
export interface Authentication {
  readonly authenticator: Authenticator;
  /** What clients read to learn whose tokens are accepted. */
  readonly publicRoutes: ReadonlyMap<string, HttpRoute>;
  close(): void;
}

export async function createAuthentication(
  { tls, endpoints, access, proxyEnv }: HttpListenerConfig,
  deps: Deps,
): Promise<Authentication> {
  const oauth = access.auth?.oauth;
  const scheme = tls === undefined ? 'http' : 'https';
  const resource = oauth === undefined ? undefined : new ProtectedResource({ ...oauth, endpoints, scheme });
  let client: HttpClient | undefined;
  const createClient = async (): Promise<HttpClient> => {
    const { HttpClient } = await import('../http/client/client.ts');
    const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
    client ??= new HttpClient({ ...NO_CREDENTIALS, proxyEnv, userAgent, clock: deps.clock });
    return client;
  };
  const authenticator = await createAuthenticator({ auth: access.auth, resource, createClient, deps });
  const publicRoutes = resource === undefined ? new Map<string, HttpRoute>() : metadataRoutes(resource);
  return { authenticator, publicRoutes, close: () => client?.close() };
}

/** An issuer is shown none of the credentials that are for the server. */
const NO_CREDENTIALS = {
  credentials: undefined,
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
