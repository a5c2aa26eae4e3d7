import type { IncomingMessage } from 'node:http';

export interface PublicUrlOptions {
  /** `--base-url`; undefined if there is no reverse proxy. */
  readonly baseUrl: URL | undefined;
  /** The scheme of the listener. Behind a reverse proxy clients may use another, which --base-url then names. */
  readonly scheme: 'http' | 'https';
}

/** Returns the URL of one of the bridge's paths, as the client of this request reaches it. */
export type PublicUrl = (path: string, request: IncomingMessage) => string;

/** Without --base-url, clients get the Host that they have sent themselves. The access policy has checked it. */
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

/**
 * The place of the bridge in a program's web server that passed the request on. `prefix` precedes the bridge's own
 * path, without a trailing slash, and may be empty.
 */
export interface Mount {
  readonly prefix: string;
  readonly scheme: 'http' | 'https';
}

const MOUNT = Symbol('mount');

type MountedRequest = IncomingMessage & { [MOUNT]?: Mount };

/**
 * Records how the client of this request reaches the bridge. Stored as a property of the request, like its caller
 * (http/auth/callers.ts).
 */
export function recordMount(request: IncomingMessage, mount: Mount): void {
  (request as MountedRequest)[MOUNT] = mount;
}

/** Returns undefined if the request arrived at the bridge's own listener. */
export function mountOf(request: IncomingMessage): Mount | undefined {
  return (request as MountedRequest)[MOUNT];
}

/** On a wildcard address any Host is accepted, even one that is no valid host. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i;
