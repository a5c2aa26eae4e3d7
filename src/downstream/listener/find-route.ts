import type { IncomingMessage } from 'node:http';
import type { Authenticator } from '../../http/auth/authenticator.ts';
import { isBrowserNavigation } from './browser-page.ts';
import type { FoundRoute, HttpRoute } from './http-server.ts';

/** What is served for one server, by path. */
export interface Routes {
  /** For callers. */
  readonly routes: ReadonlyMap<string, HttpRoute>;
  /** Nobody is asked who they are; Host and Origin are checked. */
  readonly publicRoutes: ReadonlyMap<string, HttpRoute>;
  /** What people get there who look with a browser. Nobody is asked who they are; Host and Origin are checked. */
  readonly browserPages: ReadonlyMap<string, HttpRoute>;
}

/** Undefined: nothing of this server is at that path. */
export function findRoute(
  { routes, publicRoutes, browserPages }: Routes,
  { request, path }: { readonly request: IncomingMessage; readonly path: string },
  authenticator: Authenticator,
): FoundRoute | undefined {
  const isForBrowser = request.method !== 'POST' && isBrowserNavigation(request);
  const open = publicRoutes.get(path) ?? (isForBrowser ? findPath(browserPages, path) : undefined);
  if (open !== undefined) return { audience: 'anybody', route: open };
  const route = findPath(routes, path);
  return route === undefined ? undefined : { audience: authenticator, route };
}

/** Some servers have it at `/mcp/`, and so do the settings of their clients. */
function findPath(routes: ReadonlyMap<string, HttpRoute>, path: string): HttpRoute | undefined {
  return routes.get(path) ?? routes.get(path.replace(/\/$/, ''));
}
