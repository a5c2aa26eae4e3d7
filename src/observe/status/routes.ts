import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { respondError, respondJson } from '../../http/server/respond.ts';
import type { Status } from './create-status.ts';
import type { OtherReplicas } from './other-replicas.ts';
import { ReplicasStatus } from './replicas-status.ts';
import { StatusStream } from './status-stream.ts';

export type StatusRoute = (request: IncomingMessage, response: ServerResponse, query?: URLSearchParams) => void;

export interface StatusRoutes {
  /** Files of the page. They hold no data, so they need no authentication, but Host and Origin must be checked. */
  readonly assets: ReadonlyMap<string, StatusRoute>;
  /** Routes that show clients and servers, only for callers that may see the status. */
  readonly data: ReadonlyMap<string, StatusRoute>;
  /** Ends the open event streams. */
  readonly close: () => void;
}

/**
 * The page loads everything from this origin, as separate files; no other code can run in it, and it can send data
 * nowhere else.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const ASSET_HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** The page uses relative addresses, so it also works behind a proxy that adds a path prefix. */
const ASSETS = {
  '/status': { name: 'html', type: 'text/html; charset=utf-8' },
  '/status.css': { name: 'css', type: 'text/css; charset=utf-8' },
  '/status.js': { name: 'js', type: 'text/javascript; charset=utf-8' },
} as const;

/** @param others undefined: this bridge is the only one, and its status is that of all */
export function createStatusRoutes(status: Status, clock: Clock, others?: OtherReplicas): StatusRoutes {
  const stream = new StatusStream(status, clock);
  const all = others && createRoutesOfAll(status, clock, others);
  const show: StatusRoute = (_request, response) => respondJson(response, 200, status());
  const watch: StatusRoute = (_request, response) => stream.watch(response);
  const assets = Object.entries(ASSETS).map(([path, asset]) => [path, only(GET_OR_HEAD, assetRoute(asset))] as const);
  return {
    assets: new Map(assets),
    data: new Map([
      ['/status.json', only(GET_OR_HEAD, ofOneOrAll(show, all?.show))],
      ['/status/events', only(['GET'], ofOneOrAll(watch, all?.watch))],
    ]),
    close: () => {
      stream.close();
      all?.close();
    },
  };
}

/** Returns true if the query asks for the status of all replicas. */
export function isOfAll(query: URLSearchParams | undefined): boolean {
  return query?.get('replicas') === 'all';
}

function ofOneOrAll(one: StatusRoute, all: StatusRoute | undefined): StatusRoute {
  return (request, response, query) => (isOfAll(query) && all !== undefined ? all : one)(request, response, query);
}

function createRoutesOfAll(status: Status, clock: Clock, others: OtherReplicas) {
  const replicas = new ReplicasStatus(status, others, () => clock.now());
  const stream = new StatusStream(() => replicas.latest(), clock);
  const respondWhenRead = (
    run: (response: ServerResponse, read: Awaited<ReturnType<typeof replicas.read>>) => void,
  ): StatusRoute => {
    return (_request, response) => {
      replicas.read().then(
        (read) => {
          if (!response.destroyed) run(response, read);
        },
        (thrown: unknown) => respondError(response, toBridgeError(thrown)),
      );
    };
  };
  return {
    show: respondWhenRead((response, read) => respondJson(response, 200, read)),
    watch: respondWhenRead((response) => stream.watch(response)),
    close: () => stream.close(),
  };
}

function assetRoute({ name, type }: (typeof ASSETS)[keyof typeof ASSETS]): StatusRoute {
  return (_request, response) => {
    // The page is loaded on demand, as most bridges never serve it.
    import('./page/status-page.ts').then(
      ({ PAGE }) => {
        const body = Buffer.from(PAGE[name]);
        response.writeHead(200, { ...ASSET_HEADERS, 'Content-Type': type, 'Content-Length': body.length }).end(body);
      },
      (cause: unknown) => {
        const message = 'The status page cannot be read: a part of mcp-portage is missing.';
        respondError(response, new BridgeError('ERR_INTERNAL', message, { cause }));
      },
    );
  };
}

const GET_OR_HEAD = ['GET', 'HEAD'];

function only(methods: readonly string[], route: StatusRoute): StatusRoute {
  return (request, response, query) => {
    if (methods.includes(request.method ?? '')) return route(request, response, query);
    const error = new BridgeError('ERR_HTTP_METHOD', `Only ${methods.join(' and ')} is served here.`);
    respondError(response, error, undefined, { Allow: methods.join(', ') });
  };
}
