import type { IncomingMessage } from 'node:http';
import type { AuthConfig } from '../config/access.ts';
import type { EndpointConfig, HttpListenerConfig } from '../config/listener.ts';
import type { Deps } from '../deps.ts';
import type { HttpRoute } from '../downstream/listener/http-server.ts';
import { BridgeError } from '../errors.ts';
import { BearerAuthenticator, createTokenChecks } from '../http/auth/bearer-authenticator.ts';
import { ALLOW_ANYONE, type Authenticator } from '../http/auth/callers.ts';
import { ProtectedResource, resourceUrls } from '../http/auth/protected-resource.ts';
import type { HttpClient } from '../http/client/client.ts';
import { respondError, respondJson } from '../http/server/respond.ts';
import { CLIENT_INFO } from '../version.ts';

/** Authentication of callers. */
export interface Authentication {
  /** Authenticates callers of these endpoints. A token that was issued for one server is not accepted at another. */
  forEndpoints(endpoints: EndpointConfig): EndpointAuthentication;
  /** Authenticates callers with a token that is valid at any of these endpoints. */
  anywhere(all: readonly EndpointConfig[]): Authenticator;
  close(): void;
}

export interface EndpointAuthentication {
  readonly authenticator: Authenticator;
  /** Metadata documents that tell clients whose tokens are accepted. */
  readonly publicRoutes: ReadonlyMap<string, HttpRoute>;
}

export async function createAuthentication(listener: HttpListenerConfig, deps: Deps): Promise<Authentication> {
  const { auth } = listener.access;
  if (auth === undefined) return NOBODY_IS_ASKED;
  const scheme = listener.tls === undefined ? 'http' : 'https';
  let client: HttpClient | undefined;
  const createClient = async (): Promise<HttpClient> => {
    const { HttpClient } = await import('../http/client/client.ts');
    const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
    const { proxyEnv } = listener;
    client ??= new HttpClient({ ...NO_CREDENTIALS, proxyEnv, userAgent, clock: deps.clock });
    return client;
  };
  const checks = await createTokenChecks({ auth, createClient, deps });
  const scopes = auth.oauth?.scopes ?? [];
  const forResource = (resource: ProtectedResource | undefined, audiences: readonly string[]): Authenticator => {
    const hintsFor = (called: IncomingMessage) => ({ resourceMetadata: resource?.urlFor(called), scopes });
    return new BearerAuthenticator({ ...checks, audiences, hintsFor });
  };
  return {
    forEndpoints(endpoints) {
      const resource = describeResource(auth, endpoints, scheme);
      return {
        authenticator: forResource(resource, audiencesOf(auth, endpoints)),
        publicRoutes: resource === undefined ? new Map() : metadataRoutes(resource),
      };
    },
    anywhere: (all) => forResource(undefined, [...new Set(all.flatMap((endpoints) => audiencesOf(auth, endpoints)))]),
    close: () => client?.close(),
  };
}

const NOBODY_IS_ASKED: Authentication = {
  anywhere: () => ALLOW_ANYONE,
  forEndpoints: () => ({ authenticator: ALLOW_ANYONE, publicRoutes: new Map() }),
  close: () => undefined,
};

function audiencesOf({ oauth }: AuthConfig, endpoints: EndpointConfig): readonly string[] {
  if (oauth === undefined) return [];
  return oauth.audiences === 'own-urls' ? resourceUrls(endpoints) : oauth.audiences;
}

function describeResource({ oauth }: AuthConfig, endpoints: EndpointConfig, scheme: 'http' | 'https') {
  return oauth && new ProtectedResource({ ...oauth, endpoints, scheme });
}

/** No credentials: those of the server must not be sent to an issuer. */
const NO_CREDENTIALS = {
  credentials: undefined,
  headers: new Map<string, string>(),
  socketPath: undefined,
  bearerTokenFile: undefined,
  tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
};

/**
 * Returns the routes of the metadata documents, which tell clients who issues tokens for this server. They need no
 * token. [RFC 9728 3.1]
 */
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
