import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { respondError, respondJson } from '../../http/server/respond.ts';
import { type DetailOf, type Status, withDetail } from './create-status.ts';
import type { OtherReplicas } from './other-replicas.ts';
import { ReplicasStatus } from './replicas-status.ts';
import type { StatusDocument } from './status-document.ts';
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

export interface ShownStatus {
  readonly status: Status;
  readonly detailOf: DetailOf;
  readonly clock: Clock;
  /** Whether the page has messages, which it reads at `/status/messages`. */
  readonly messages: 'shown' | 'hidden';
  /** Undefined: this bridge is the only one, and its status is that of all. */
  readonly others: OtherReplicas | undefined;
}

export function createStatusRoutes({ status, detailOf, clock, messages, others }: ShownStatus): StatusRoutes {
  const stream = new StatusStream(status, detailOf, clock);
  const all = others && createRoutesOfAll({ status, detailOf, clock, messages, others });
  const show: StatusRoute = (_request, response, query) =>
    respondJson(response, 200, withDetail(status(), detailOf, serverIn(query)));
  const watch: StatusRoute = (_request, response, query) => stream.watch(response, serverIn(query));
  const assets = Object.entries(ASSETS).map(
    ([path, asset]) => [path, only(GET_OR_HEAD, assetRoute(asset, messages))] as const,
  );
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

/** Returns the name of the server that the query asks about. */
function serverIn(query: URLSearchParams | undefined): string | undefined {
  return query?.get('server') ?? undefined;
}

function createRoutesOfAll({ status, detailOf, clock, others }: ShownStatus & { readonly others: OtherReplicas }) {
  const replicas = new ReplicasStatus(status, others, () => clock.now());
  const stream = new StatusStream(() => replicas.latest(), detailOf, clock);
  const respondWhenRead = (
    run: (response: ServerResponse, read: StatusDocument, server: string | undefined) => void,
  ): StatusRoute => {
    return (_request, response, query) => {
      replicas.read().then(
        (read) => {
          if (!response.destroyed) run(response, read, serverIn(query));
        },
        (thrown: unknown) => respondError(response, toBridgeError(thrown)),
      );
    };
  };
  return {
    show: respondWhenRead((response, read, server) => respondJson(response, 200, withDetail(read, detailOf, server))),
    watch: respondWhenRead((response, _read, server) => stream.watch(response, server)),
    close: () => stream.close(),
  };
}

function assetRoute(
  { name, type }: (typeof ASSETS)[keyof typeof ASSETS],
  messages: ShownStatus['messages'],
): StatusRoute {
  return (_request, response) => {
    // The page is loaded on demand, as most bridges never serve it.
    import('./page/status-page.ts').then(
      ({ PAGE, PAGE_WITH_MESSAGES }) => {
        const body = Buffer.from((messages === 'shown' ? PAGE_WITH_MESSAGES : PAGE)[name]);
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
