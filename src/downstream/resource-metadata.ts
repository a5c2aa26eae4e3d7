import { BridgeError } from '../errors.ts';
import type { ProtectedResource } from '../http/auth/protected-resource.ts';
import { respondError, respondJson } from '../http/respond.ts';
import type { HttpRoute } from './http-server.ts';

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
