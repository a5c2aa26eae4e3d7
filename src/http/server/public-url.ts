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
  return (path, request) => {
    const { host = '' } = request.headers;
    const mount = mountOf(request);
    const called = HOST.test(host) ? host : 'localhost';
    return `${mount?.scheme ?? scheme}://${called}${mount?.prefix ?? ''}${path}`;
  };
}

/** Where a request was taken from a server that is not ours. */
export interface Mount {
  /** What stood before our own path: without a slash at the end, and empty where nothing did. */
  readonly prefix: string;
  readonly scheme: 'http' | 'https';
}

const MOUNT = Symbol('mount');

type MountedRequest = IncomingMessage & { [MOUNT]?: Mount };

/** Records how the client of this request reaches us. A property of the request, as the caller is (http/auth/callers.ts). */
export function recordMount(request: IncomingMessage, mount: Mount): void {
  (request as MountedRequest)[MOUNT] = mount;
}

/** Undefined: it came to our own listener. */
export function mountOf(request: IncomingMessage): Mount | undefined {
  return (request as MountedRequest)[MOUNT];
}

/** Listening on all interfaces, any Host is served, and it may be none. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i;
