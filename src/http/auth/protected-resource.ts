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
 * The metadata that says where to get a token for this server. Each endpoint is a resource of its own, for clients
 * compare its URL with the one they were given. [RFC 9728 3.3]
 */
export class ProtectedResource {
  readonly #options: ProtectedResourceOptions;
  readonly #publicUrl: PublicUrl;
  /** Path of a document → path of the endpoint it is about. */
  readonly #documents: ReadonlyMap<string, string>;

  constructor(options: ProtectedResourceOptions) {
    this.#options = options;
    const { path, baseUrl } = options.endpoints;
    this.#publicUrl = createPublicUrl({ baseUrl, scheme: options.scheme });
    const prefix = baseUrl?.pathname.replace(/\/$/, '') ?? '';
    this.#documents = new Map([
      [WELL_KNOWN, path],
      // Some proxies forward only what is below their prefix, some also the well-known path with the prefix in it.
      ...resourcePaths(options.endpoints).flatMap((endpoint) => [
        [`${WELL_KNOWN}${endpoint}`, endpoint] as const,
        [`${WELL_KNOWN}${prefix}${endpoint}`, endpoint] as const,
      ]),
    ]);
  }

  /** Paths of its documents. */
  get paths(): readonly string[] {
    return [...this.#documents.keys()];
  }

  /** The document at one of `paths`. [RFC 9728 2] */
  describe(path: string, request: IncomingMessage): Readonly<Record<string, unknown>> {
    const { issuer, scopes } = this.#options;
    return {
      resource: this.#publicUrl(this.#documents.get(path) ?? '', request),
      authorization_servers: [issuer],
      ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
    };
  }

  /** For the challenge to a request: where the document about its endpoint is. */
  urlFor(request: IncomingMessage): string {
    const { path, ssePath, messagePath, wsPath, httpSse, webSocket } = this.#options.endpoints;
    // Endpoints are served with a trailing slash, too.
    const called = request.url?.split('?', 1)[0]?.replace(/\/$/, '');
    const isSse = httpSse === 'served' && (called === ssePath || called === messagePath);
    const isWebSocket = webSocket === 'served' && called === wsPath;
    const endpoint = isWebSocket ? wsPath : isSse ? ssePath : path;
    return this.#publicUrl(`${WELL_KNOWN}${endpoint}`, request);
  }
}

/** [spec 2025-11-25 basic/authorization#canonical-server-uri] What clients ask a token for unless told otherwise. */
export function resourceUrls(endpoints: EndpointConfig): readonly string[] {
  const { baseUrl } = endpoints;
  if (baseUrl === undefined) return [];
  const base = baseUrl.href.replace(/\/$/, '');
  return resourcePaths(endpoints).map((endpoint) => `${base}${endpoint}`);
}

/** A WebSocket begins with a request over HTTP, and its URL as a resource has that scheme. [RFC 9728 1.2] */
function resourcePaths({ path, ssePath, wsPath, httpSse, webSocket }: EndpointConfig): readonly string[] {
  return [path, ...(httpSse === 'served' ? [ssePath] : []), ...(webSocket === 'served' ? [wsPath] : [])];
}
