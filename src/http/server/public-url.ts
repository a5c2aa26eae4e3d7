import type { IncomingMessage } from 'node:http';

export interface PublicUrlOptions {
  /** `--base-url`; undefined: there is no reverse proxy. */
  readonly baseUrl: URL | undefined;
  /** How the bridge listens; what clients see may differ behind a reverse proxy, which is for --base-url to say. */
  readonly scheme: 'http' | 'https';
}

/** The URL of a path of ours, as the client that sent this request reaches it. */
export type PublicUrl = (path: string, request: IncomingMessage) => string;

/** Without --base-url, clients are told the name they call us by themselves; it was checked together with the request. */
export function createPublicUrl({ baseUrl, scheme }: PublicUrlOptions): PublicUrl {
  if (baseUrl !== undefined) {
    const base = baseUrl.href.replace(/\/$/, '');
    return (path) => `${base}${path}`;
  }
  return (path, { headers }) => `${scheme}://${HOST.test(headers.host ?? '') ? headers.host : 'localhost'}${path}`;
}

/** Listening on all interfaces, any Host is served, and it may be none. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i;
