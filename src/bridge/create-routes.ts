import type { IncomingMessage } from 'node:http';
import type { BoundAddress, EndpointConfig, HttpListenerConfig, TcpAddress } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import type { GrpcEndpoint } from '../downstream/grpc/endpoint.ts';
import { CLIENT_LIMITS } from '../downstream/http/read-post.ts';
import { HttpSseEndpoint, refuseHttpSse, SESSION_PARAMETER } from '../downstream/http-sse/endpoint.ts';
import { Sunset } from '../downstream/http-sse/sunset.ts';
import { addressOf, browserPages, type Endpoint } from '../downstream/listener/browser-page.ts';
import type { FoundRoute, HttpRoute } from '../downstream/listener/http-server.ts';
import { McpEndpoint } from '../downstream/mcp-endpoint.ts';
import type { Placement } from '../downstream/placement.ts';
import { StreamableEndpoint, type StreamableEndpointOptions } from '../downstream/streamable-session/endpoint.ts';
import { StatelessEndpoint } from '../downstream/streamable-stateless/endpoint.ts';
import { WebSocketEndpoint } from '../downstream/websocket/endpoint.ts';
import { BridgeError } from '../errors.ts';
import { environmentOf, mapCaller, mapCallerToken, principalOf, tokenOf } from '../http/auth/callers.ts';
import { CALLER_HEADER, forwardedHeaders } from '../http/headers.ts';
import type { ExchangedTokens } from '../http/login/exchange-token.ts';
import { addressBase } from '../http/server/listen-addresses.ts';
import { createPublicUrl, mountOf, type PublicUrl } from '../http/server/public-url.ts';
import type { BodyBudget } from '../http/server/read-body.ts';
import { respondError } from '../http/server/respond.ts';
import { showGrpcAddress, showStreamAddress } from '../http/socket-addresses.ts';
import { SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import type { Lane } from '../relay/call.ts';
import type { CallRegistry } from '../relay/call-registry.ts';
import type { CallerPolicy } from './caller-policy.ts';
import type { EndpointAuthentication } from './create-authentication.ts';
import type { RunningBridge } from './running-bridge.ts';

export interface EndpointParts extends Pick<StreamableEndpointOptions, 'deps' | 'sessions' | 'live'> {
  readonly modernCalls: CallRegistry;
  /** Finds the replica that serves a request; undefined: every request is served here. */
  readonly placement?: Placement | undefined;
  readonly bodies: BodyBudget;
  readonly webSockets: WebSocketEndpoint;
}

/** The settings of one server that its routes depend on. */
export interface RoutedServer extends Pick<ServerConfig, 'limits'> {
  readonly remote: Pick<ServerConfig['remote'], 'forwardHeaders'>;
  readonly sessions: Pick<ServerConfig['sessions'], 'pollAfterMs' | 'maxSessions' | 'maxCallerSessions'>;
  readonly callers: CallerPolicy;
  readonly listener: RoutedListener;
}

/** The part of the listener's configuration that the routes of a server depend on. */
type RoutedListener = Pick<HttpListenerConfig, 'endpoints' | 'tls'>;

type CarriedClientParts = Pick<EndpointParts, 'sessions' | 'bodies' | 'deps'>;

/** Creates the WebSocket endpoint, which also serves clients that did not arrive through this listener, as at a hub. */
export function createWebSocketEndpoint(server: RoutedServer, parts: CarriedClientParts): WebSocketEndpoint {
  return new WebSocketEndpoint(optionsForCarriedClients(server, parts));
}

/** Loaded on demand, since few servers are served over gRPC. */
export async function createGrpcEndpoint(server: RoutedServer, parts: CarriedClientParts): Promise<GrpcEndpoint> {
  const { GrpcEndpoint } = await import('../downstream/grpc/endpoint.ts');
  return new GrpcEndpoint(optionsForCarriedClients(server, parts));
}

/** Options of the endpoints whose clients stay connected, and were admitted with a request. */
function optionsForCarriedClients(
  { limits, remote, sessions: { maxSessions, maxCallerSessions } }: RoutedServer,
  { sessions, bodies, deps }: CarriedClientParts,
) {
  const { maxMessageBytes, maxJsonDepth, requestTimeoutMs: untakenTimeoutMs } = limits;
  const headersOf = headersToPass(remote);
  return {
    sessions,
    principalOf,
    environmentOf,
    headersOf,
    maxMessageBytes,
    maxJsonDepth,
    untakenTimeoutMs,
    bodies,
    maxConnections: maxSessions,
    maxConnectionsPerCaller: maxCallerSessions,
    deps,
  };
}

/** Finds the headers of a request that pass to a remote server, and tells whose it is where that matters there. */
function headersToPass({ forwardHeaders }: RoutedServer['remote']): (request: IncomingMessage) => Lane['headers'] {
  return (request) => {
    const headers = forwardedHeaders(request, forwardHeaders);
    const token = tokenOf(request);
    return token === undefined ? headers : { ...headers, [CALLER_HEADER]: token.caller };
  };
}

/** The routes of one server by path, and the endpoint that holds its sessions over Streamable HTTP. */
export interface CreatedRoutes {
  readonly routes: ReadonlyMap<string, HttpRoute>;
  readonly streamable: StreamableEndpoint;
}

export function createRoutes(server: RoutedServer, parts: EndpointParts): CreatedRoutes {
  const { endpoints } = server.listener;
  const { path, ssePath, messagePath, wsPath, baseUrl, httpSse, webSocket } = endpoints;
  const { wallClock } = parts.deps;
  const { maxMessageBytes, maxJsonDepth, maxReplayBytes, maxSessionStreams: maxStreams } = server.limits;
  const bodies = {
    maxMessageBytes,
    messages: { ...CLIENT_LIMITS, maxDepth: maxJsonDepth },
    bodies: parts.bodies,
    maxWaitMs: server.limits.requestTimeoutMs,
    clock: parts.deps.clock,
  };
  const shared = { ...parts, bodies, headersOf: headersToPass(server.remote), principalOf, environmentOf };
  const basePrefix = baseUrl?.pathname.replace(/\/$/, '');
  const prefixFor = (request: IncomingMessage) => basePrefix ?? mountOf(request)?.prefix ?? '';
  const publicUrl = publicUrlOf(server.listener);
  const streamableUrl = (request: IncomingMessage) => publicUrl(path, request);
  const sunset = endpoints.sunset && new Sunset({ ...endpoints.sunset, wallClock, streamableUrl });
  const announcedMessagePath = (request: IncomingMessage) => `${prefixFor(request)}${messagePath}`;
  const sse = new HttpSseEndpoint({ ...shared, announcedMessagePath, streamableUrl, sunset });
  const { pollAfterMs } = server.sessions;
  const streamableEndpoint = new StreamableEndpoint({ ...shared, pollAfterMs, maxStreams, maxReplayBytes });
  const endpoint = new McpEndpoint({
    sessions: streamableEndpoint,
    stateless: new StatelessEndpoint(shared),
    bodies,
    openWithoutSession: httpSse === 'served' ? sse.openStream : undefined,
    placement: parts.placement,
  });
  const routes = new Map([[path, endpoint.route]]);
  if (httpSse === 'served') {
    routes.set(ssePath, sse.openStream);
    routes.set(messagePath, sse.takeMessage);
  }
  if (webSocket === 'served') routes.set(wsPath, parts.webSockets.route);
  const { placement } = parts;
  if (placement === undefined) return { routes, streamable: streamableEndpoint };
  const placed = [...routes].map(([route, serve]) => [route, placeRequests(serve, placement)] as const);
  return { routes: new Map(placed), streamable: streamableEndpoint };
}

/** Serves each request at its replica, before its transport sees it. */
function placeRequests(route: HttpRoute, placement: Placement): HttpRoute {
  return (request, response, query) => {
    const id = sessionIdOf(request, query);
    const serve = (): void => route(request, response, query);
    placement.place(id === undefined ? { kind: 'nothing' } : { kind: 'session', id }, { request, response, serve });
  };
}

/** Returns the id of the session that a request belongs to: in its header, or over HTTP+SSE in its query. */
export function sessionIdOf({ headers }: IncomingMessage, query: URLSearchParams): string | undefined {
  const id = headers[SESSION_ID_HEADER] ?? query.get(SESSION_PARAMETER);
  return typeof id === 'string' ? id : undefined;
}

/** Returns the paths of a server's endpoints. */
export function pathsOf({ path, ssePath, messagePath, wsPath, httpSse, webSocket }: EndpointConfig): readonly string[] {
  return [path, ...(httpSse === 'served' ? [ssePath, messagePath] : []), ...(webSocket === 'served' ? [wsPath] : [])];
}

/** The routes at the paths of one server, which exist even while it is not running. */
export interface RouteTable {
  readonly routes: ReadonlyMap<string, FoundRoute>;
  /** Pages that a browser gets instead. */
  readonly pages: ReadonlyMap<string, FoundRoute>;
}

export interface ServedRoutes {
  readonly authentication: EndpointAuthentication;
  /** Callers that may know that the server exists: `anybody`, or only authenticated `callers`. */
  readonly knownTo: 'anybody' | 'callers';
  /** Returns the route of a path. */
  readonly routeAt: (path: string) => HttpRoute;
  /** Limits a route to the server's own callers. */
  readonly onlyForCallers: (route: HttpRoute) => HttpRoute;
}

export function createRouteTable(listener: RoutedListener, served: ServedRoutes): RouteTable {
  const { endpoints } = listener;
  const { authenticator, publicRoutes } = served.authentication;
  const publicUrl = publicUrlOf(listener);
  const forCaller = (path: string, route: HttpRoute): Found => [path, { audience: authenticator, route }];
  const forCallers = pathsOf(endpoints).map((path) => forCaller(path, served.routeAt(path)));
  const refused = refusedRoutes(endpoints, publicUrl);
  if (served.knownTo === 'callers') {
    // A browser has no token, so a page for it would show everybody which names exist.
    const told = refused.map(([path, route]) => forCaller(path, served.onlyForCallers(route)));
    return {
      routes: new Map([...alsoWithSlash(forCallers), ...told, ...[...publicRoutes].map(forAnybody)]),
      pages: new Map(),
    };
  }
  const open = new Map([...publicRoutes, ...refused].map(forAnybody));
  const pages = [...browserPages(endpointsOf(endpoints), publicUrl)].map(forAnybody);
  return {
    routes: new Map([...alsoWithSlash(forCallers), ...open]),
    pages: new Map(alsoWithSlash(pages).filter(([path]) => !open.has(path))),
  };
}

type Found = readonly [path: string, found: FoundRoute];

/** Opens a route to everybody without authentication. Host and Origin are still checked. */
function forAnybody([path, route]: readonly [string, HttpRoute]): Found {
  return [path, { audience: 'anybody', route }];
}

/** Adds each path with a trailing slash, as some servers use `/mcp/`, and so do the settings of their clients. */
function alsoWithSlash(found: readonly Found[]): readonly Found[] {
  return [...found.map(([path, route]): Found => [`${path}/`, route]), ...found];
}

/** If HTTP+SSE is off, returns routes at its paths that point clients to Streamable HTTP. */
function refusedRoutes(
  { path, ssePath, messagePath, httpSse }: EndpointConfig,
  publicUrl: PublicUrl,
): readonly (readonly [path: string, route: HttpRoute])[] {
  if (httpSse === 'served') return [];
  const refusal = refuseHttpSse((request) => publicUrl(path, request));
  return [ssePath, messagePath].filter((refused) => refused !== path).map((refused) => [refused, refusal]);
}

export function publicUrlOf({ endpoints: { baseUrl }, tls }: RoutedListener): PublicUrl {
  return createPublicUrl({ baseUrl, scheme: tls === undefined ? 'http' : 'https' });
}

/** Returns the listener's endpoints for a server of a configuration file. */
export function endpointsBelow(endpoints: EndpointConfig, segment: string): EndpointConfig {
  const below = (path: string): string => `/${segment}${path}`;
  const { path, ssePath, messagePath, wsPath } = endpoints;
  return {
    ...endpoints,
    path: below(path),
    ssePath: below(ssePath),
    messagePath: below(messagePath),
    wsPath: below(wsPath),
  };
}

/** Takes note of the tokens that callers show. */
export interface CallerTokens extends Pick<ExchangedTokens, 'note'> {
  /** True at the aggregate, where callers without such a token can use the members that need none. */
  readonly areOptional?: true;
}

/**
 * Makes the mapped headers of a caller, or the claims of its token, a part of its identity: callers for whom the server
 * is shown different things share nothing. Returns why the request cannot be served, or undefined.
 */
export type KnowCaller = (request: IncomingMessage) => BridgeError | undefined;

/** Undefined: nothing is added to the identity of callers. */
export function createKnowCaller(
  mapHeaders: ServerConfig['mapHeaders'],
  callerTokens: CallerTokens | undefined,
): KnowCaller | undefined {
  if (callerTokens === undefined)
    return mapHeaders.length === 0 ? undefined : (request) => mapCaller(request, mapHeaders);
  return (request) => {
    const token = mapCallerToken(request);
    if (!(token instanceof BridgeError)) callerTokens.note(token);
    else if (callerTokens.areOptional !== true) return token;
    return mapHeaders.length === 0 ? undefined : mapCaller(request, mapHeaders);
  };
}

/** Wraps a route so that its callers are known before it serves them. */
export function withKnownCallers(route: HttpRoute, knowCaller: KnowCaller | undefined): HttpRoute {
  if (knowCaller === undefined) return route;
  return (request, response, query) => {
    const refusal = knowCaller(request);
    if (refusal === undefined) route(request, response, query);
    else respondError(response, refusal);
  };
}

function endpointsOf({ path, ssePath, wsPath, httpSse, webSocket }: EndpointConfig): readonly Endpoint[] {
  return [
    { transport: 'Streamable HTTP', path, scheme: 'http' },
    ...(httpSse === 'served' ? [{ transport: 'HTTP+SSE', path: ssePath, scheme: 'http' } as const] : []),
    ...(webSocket === 'served' ? [{ transport: 'WebSocket', path: wsPath, scheme: 'ws' } as const] : []),
  ];
}

/** Returns the base URL of the listener for clients: the configured one, or else that of its first address. */
export function baseOf({ tls, endpoints: { baseUrl } }: HttpListenerConfig, bound: readonly BoundAddress[]): string {
  if (baseUrl !== undefined) return baseUrl.href.replace(/\/$/, '');
  const [first] = bound;
  return first === undefined ? '' : addressBase(first, tls);
}

/** Returns the URLs of the servers, for people. */
export function createUrls(
  listener: HttpListenerConfig,
  servers: readonly Pick<ServerConfig, 'listing'>[],
  bound: readonly BoundAddress[],
): RunningBridge['urls'] {
  const [first, ...others] = bound;
  if (first === undefined) return [];
  const { endpoints, tls } = listener;
  const under = (base: string): RunningBridge['urls'] =>
    servers.flatMap(({ listing }) =>
      listing === undefined
        ? endpointsOf(endpoints).map((endpoint) => ({
            label: endpoint.transport,
            url: addressOf(endpoint, `${base}${endpoint.path}`),
          }))
        : [{ label: listing.name, url: `${base}${endpointsBelow(endpoints, listing.segment).path}` }],
    );
  const own = addressBase(first, tls);
  return [
    ...under(baseOf(listener, bound)),
    ...others.flatMap((address) => under(addressBase(address, tls))),
    { label: 'Health', url: `${own}/healthz` },
    { label: 'Readiness', url: `${own}/readyz` },
  ];
}

/**
 * Returns the addresses of byte streams. `bound` is in the order of the streams; those that are not bound yet are left
 * out.
 */
export function createStreamUrls(
  { streams, tls }: HttpListenerConfig,
  servers: readonly Pick<ServerConfig, 'listing'>[],
  bound: readonly BoundAddress[],
): RunningBridge['urls'] {
  return streams.flatMap(({ segment }, index) => {
    const address = bound[index];
    if (address === undefined) return [];
    const listing = servers.find((server) => server.listing?.segment === segment)?.listing;
    const isTls = address.kind === 'tcp' && tls !== undefined;
    const url = showStreamAddress(address.kind === 'tcp' ? { ...address, tls: isTls ? 'on' : 'off' } : address);
    return [{ label: listing === undefined ? 'Byte stream' : `${listing.name}, byte stream`, url }];
  });
}

/** Returns the addresses for gRPC. `bound` is in the order of the ports; those that are not bound yet are left out. */
export function createGrpcUrls(
  { grpc, tls }: HttpListenerConfig,
  servers: readonly Pick<ServerConfig, 'listing'>[],
  bound: readonly TcpAddress[],
): RunningBridge['urls'] {
  return grpc.flatMap(({ segment }, index) => {
    const address = bound[index];
    if (address === undefined) return [];
    const listing = servers.find((server) => server.listing?.segment === segment)?.listing;
    const url = showGrpcAddress({ ...address, tls: tls === undefined ? 'off' : 'on' });
    return [{ label: listing === undefined ? 'gRPC' : `${listing.name}, gRPC`, url }];
  });
}
