import type { IncomingMessage } from 'node:http';
import type { EndpointConfig } from '../../config/listener.ts';
import { createPublicUrl, type PublicUrl, type PublicUrlOptions } from '../server/public-url.ts';

export interface ProtectedResourceOptions {
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly endpoints: EndpointConfig;
  readonly scheme: PublicUrlOptions['scheme'];
}

/** [RFC 9728 3] */
export const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/**
 * The metadata that tells clients where to get a token for this server. Each endpoint is a resource of its own, because
 * clients compare the resource with the URL that they were given. [RFC 9728 3.3]
 */
export class ProtectedResource {
  readonly #options: ProtectedResourceOptions;
  readonly #publicUrl: PublicUrl;
  /** Maps the path of a document to the path of the endpoint that it describes. */
  readonly #documents: ReadonlyMap<string, string>;

  constructor(options: ProtectedResourceOptions) {
    this.#options = options;
    const { path, baseUrl } = options.endpoints;
    this.#publicUrl = createPublicUrl({ baseUrl, scheme: options.scheme });
    const prefix = baseUrl?.pathname.replace(/\/$/, '') ?? '';
    this.#documents = new Map([
      [WELL_KNOWN, path],
      // Some proxies forward only paths below their prefix, others also the well-known path that contains the prefix.
      ...resourcePaths(options.endpoints).flatMap((endpoint) => [
        [`${WELL_KNOWN}${endpoint}`, endpoint] as const,
        [`${WELL_KNOWN}${prefix}${endpoint}`, endpoint] as const,
      ]),
    ]);
  }

  /** The paths of the documents. */
  get paths(): readonly string[] {
    return [...this.#documents.keys()];
  }

  /** Returns the document at one of `paths`. [RFC 9728 2] */
  describe(path: string, request: IncomingMessage): Readonly<Record<string, unknown>> {
    const { issuer, scopes } = this.#options;
    return {
      resource: this.#publicUrl(this.#documents.get(path) ?? '', request),
      authorization_servers: [issuer],
      ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
    };
  }

  /** Returns the URL of the document about the endpoint of a request, for the challenge. */
  urlFor(request: IncomingMessage): string {
    const { path, ssePath, messagePath, wsPath, httpSse, webSocket } = this.#options.endpoints;
    // Endpoints are also served with a trailing slash.
    const called = request.url?.split('?', 1)[0]?.replace(/\/$/, '');
    const isSse = httpSse === 'served' && (called === ssePath || called === messagePath);
    const isWebSocket = webSocket === 'served' && called === wsPath;
    const endpoint = isWebSocket ? wsPath : isSse ? ssePath : path;
    return this.#publicUrl(`${WELL_KNOWN}${endpoint}`, request);
  }
}

/**
 * Returns the resources that clients request tokens for by default. [spec 2025-11-25
 * basic/authorization#canonical-server-uri]
 */
export function resourceUrls(endpoints: EndpointConfig): readonly string[] {
  const { baseUrl } = endpoints;
  if (baseUrl === undefined) return [];
  const base = baseUrl.href.replace(/\/$/, '');
  return resourcePaths(endpoints).map((endpoint) => `${base}${endpoint}`);
}

/**
 * Returns the paths of the endpoints that are resources. A WebSocket begins with an HTTP request, so its URL as a
 * resource has that scheme. [RFC 9728 1.2]
 */
function resourcePaths({ path, ssePath, wsPath, httpSse, webSocket }: EndpointConfig): readonly string[] {
  return [path, ...(httpSse === 'served' ? [ssePath] : []), ...(webSocket === 'served' ? [wsPath] : [])];
}
