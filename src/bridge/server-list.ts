import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Member, Members } from '../aggregate/members.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Config } from '../config.ts';
import type { StreamReach } from '../downstream/byte-stream/endpoint.ts';
import { refuseSocket } from '../downstream/byte-stream/listener.ts';
import type { GrpcRoute } from '../downstream/grpc/listener.ts';
import { isBrowserNavigation } from '../downstream/listener/browser-page.ts';
import { livenessRoute, readinessRoute, respondReadiness } from '../downstream/listener/health.ts';
import type { FoundRoute, HttpRoute, OpenRoute, Router } from '../downstream/listener/http-server.ts';
import { BridgeError, SHUTTING_DOWN } from '../errors.ts';
import type { CallerToken } from '../http/auth/caller-token.ts';
import { type Authenticator, principalOf } from '../http/auth/callers.ts';
import { WELL_KNOWN } from '../http/auth/protected-resource.ts';
import { respondError, respondJson, respondText } from '../http/server/respond.ts';
import type { InspectedServer } from '../observe/inspection.ts';
import type { ServedEndpoint } from '../observe/usage/usage.ts';
import { READY, type Readiness, unreadinessOf } from '../relay/readiness.ts';
import { nameServer } from './create-dialer.ts';
import { endpointsBelow, pathsOf, publicUrlOf } from './create-routes.ts';
import { Composite } from './lifecycle.ts';
import { ListedServer, type ListedServerParts, NOT_SERVED } from './listed-server.ts';
import type { ListChange } from './running-bridge.ts';

/** Parts that the list is created from. */
export interface ServerListParts extends Omit<ListedServerParts, 'unknown'> {
  /** Routes of the status page and the metrics, by path. */
  readonly looking: ReadonlyMap<string, FoundRoute>;
}

/**
 * The servers behind a listener: that of the command line or the aggregate at the listener's own paths, those of a file
 * below their names.
 */
export class ServerList extends Composite implements Router {
  readonly #parts: ServerListParts;
  readonly #named = new Map<string, ListedServer>();
  #unnamed: ListedServer | undefined;
  readonly #members = new ListedMembers();
  readonly #openRoutes: ReadonlyMap<string, OpenRoute>;
  #isDraining = false;
  #callsHubs = false;

  constructor(parts: ServerListParts) {
    super();
    this.#parts = parts;
    const readiness = readinessRoute({
      readiness: () => this.#readiness(),
      hasCapacity: () => this.#required().every((server) => server.hasCapacity),
      isAtHubs: () => areAtHubs(this.#listed()),
      hasStore: () => this.#parts.replica?.isStoreAvailable ?? true,
      authenticator: () => this.#authenticator(),
      isKnownTo: (principal) => this.#unready()?.isFor(principal) ?? true,
    });
    this.#openRoutes = new Map([
      ['/healthz', livenessRoute],
      ['/readyz', readiness],
    ]);
  }

  /** The servers that the aggregate is made of. */
  get members(): Members {
    return this.#members;
  }

  /** The server of the command line, or the aggregate. */
  get unnamed(): ListedServer | undefined {
    return this.#unnamed;
  }

  /** Takes note of a token that a caller of the aggregate has shown. */
  noteToken(token: CallerToken): void {
    for (const server of this.#named.values()) if (server.member !== undefined) server.noteToken(token);
  }

  // ---- which servers there are

  /** Replaces the served servers. Servers whose configuration has not changed continue undisturbed. */
  update(servers: Config['servers']): ListChange {
    const added: string[] = [];
    const changed: string[] = [];
    const kept = new Set<ListedServer>();
    for (const config of servers) {
      const { listing } = config;
      const known = listing === undefined ? this.#unnamed : this.#named.get(listing.segment);
      if (known !== undefined) {
        const isNew = !known.isListed;
        if (known.update(config)) (isNew ? added : changed).push(nameOf(config));
        if (isNew && this.#callsHubs) known.callHubsAnew();
        kept.add(known);
        continue;
      }
      const server = this.#create(config);
      if (listing === undefined) this.#unnamed = server;
      else this.#named.set(listing.segment, server);
      kept.add(server);
      added.push(nameOf(config));
    }
    const removed = this.#listed().filter((server) => !kept.has(server));
    for (const server of removed) {
      void server.remove().then(() => {
        if (!server.isListed) this.#forget(server);
      });
    }
    this.#members.replace(servers.flatMap(({ listing }) => this.#named.get(listing?.segment ?? '')?.member ?? []));
    return {
      added,
      changed,
      removed: removed.map(({ config }) => nameOf(config)),
      unchanged: servers.length - added.length - changed.length,
    };
  }

  #forget(server: ListedServer): void {
    if (this.#unnamed === server) this.#unnamed = undefined;
    const segment = server.config.listing?.segment;
    if (segment !== undefined && this.#named.get(segment) === server) this.#named.delete(segment);
  }

  #create(config: ServerConfig): ListedServer {
    const server = new ListedServer(config, { ...this.#parts, unknown: this.#unknown });
    if (this.#callsHubs) server.callHubsAnew();
    return server;
  }

  /**
   * Inspects all servers in the list.
   * @param url returns the URL of a path of this listener
   */
  inspect(url: (path: string) => string): readonly InspectedServer[] {
    return this.#listed().map((server) => server.inspect(url));
  }

  /** The endpoints that are served, for recording their usage. */
  get served(): readonly ServedEndpoint[] {
    const { addresses, streams, grpc } = this.#parts.listener;
    return this.#listed().flatMap(({ config, endpoints }) => {
      const { path, ssePath, wsPath, httpSse, webSocket, sunset } = endpoints;
      const server = nameServer(config);
      const hasStream = streams.some(({ segment }) => segment === config.listing?.segment);
      const hasGrpc = grpc.some(({ segment }) => segment === config.listing?.segment);
      const onStreams: ServedEndpoint[] = [
        ...(hasStream ? (['byte-stream'] as const) : []),
        ...(hasGrpc ? (['grpc'] as const) : []),
      ].map((transport) => ({ server, transport, path: undefined, sunset: undefined }));
      if (addresses.length === 0) return onStreams;
      const streamable: ServedEndpoint = { server, transport: 'streamable-http', path, sunset: undefined };
      const overSse: ServedEndpoint[] =
        httpSse === 'off' ? [] : [{ server, transport: 'http-sse', path: ssePath, sunset: sunset?.date }];
      const overWebSocket: ServedEndpoint[] =
        webSocket === 'off' ? [] : [{ server, transport: 'websocket', path: wsPath, sunset: undefined }];
      return [streamable, ...overSse, ...overWebSocket, ...onStreams];
    });
  }

  #listed(): readonly ListedServer[] {
    return this.parts().filter(({ isListed }) => isListed);
  }

  /**
   * Calls the hubs of all servers, and from now on those of servers that are added. Throws what `ListedServer.callHubs`
   * throws.
   */
  async callHubs(): Promise<void> {
    this.#callsHubs = true;
    await Promise.all(this.parts().map((server) => server.callHubs()));
  }

  /** Serves a new client on a byte stream, at the server with this segment. */
  takeStream(segment: string | undefined, socket: Socket, reach: StreamReach): void {
    const server = segment === undefined ? this.#unnamed : this.#named.get(segment);
    if (server !== undefined) server.takeStream(socket, reach);
    else refuseSocket(socket, NOT_SERVED, this.#parts.deps);
  }

  /** The server with this segment, for clients over gRPC. */
  grpcRoute(segment: string | undefined): GrpcRoute {
    const find = (): ListedServer | undefined => (segment === undefined ? this.#unnamed : this.#named.get(segment));
    const isServing = (server: ListedServer | undefined): boolean =>
      !this.#isDraining && server?.isListed === true && unreadinessOf(server.readiness()) === undefined;
    const authenticator = (): Authenticator => find()?.authentication.authenticator ?? this.#authenticator();
    return {
      get authenticator() {
        return authenticator();
      },
      get isServing() {
        return isServing(find());
      },
      serve(call) {
        const server = find();
        if (server === undefined) call.refuse(NOT_SERVED);
        else server.takeGrpc(call);
      },
    };
  }

  // ---- what is served where

  findOpen(path: string): OpenRoute | undefined {
    return this.#openRoutes.get(path);
  }

  /**
   * Returns true if a path is served by a server, the status page or health checks. The list of servers at `/` does not
   * count: on the host application's server that path belongs to the host.
   */
  isServed(request: IncomingMessage, path: string): boolean {
    if (this.findOpen(path) !== undefined || this.#parts.looking.has(path)) return true;
    return this.#findOfServer(request, path) !== undefined;
  }

  find(request: IncomingMessage, path: string): FoundRoute {
    return this.#findOfServer(request, path) ?? this.#findElsewhere(request, path);
  }

  #findOfServer(request: IncomingMessage, path: string): FoundRoute | undefined {
    const found = this.#unnamed?.find(request, path);
    if (found !== undefined) return found;
    const server = this.#below(path);
    const isReadiness = server?.isListed === true && path === `/${server.config.listing?.segment}${READYZ}`;
    return isReadiness ? this.#readinessOf(server) : server?.find(request, path);
  }

  /** Returns the server whose name begins the path, or whose metadata document the path names. */
  #below(path: string): ListedServer | undefined {
    if (this.#named.size === 0) return undefined;
    return this.#named.get(segmentOf(this.#withoutWellKnown(path)));
  }

  /**
   * Removes the well-known part from a path. Some proxies forward the path of a metadata document with their own prefix
   * in it.
   */
  #withoutWellKnown(path: string): string {
    if (!path.startsWith(`${WELL_KNOWN}/`)) return path;
    const about = path.slice(WELL_KNOWN.length);
    const prefix = this.#parts.listener.endpoints.baseUrl?.pathname.replace(/\/$/, '') ?? '';
    return prefix !== '' && about.startsWith(`${prefix}/`) ? about.slice(prefix.length) : about;
  }

  #findElsewhere(request: IncomingMessage, path: string): FoundRoute {
    const looked = this.#parts.looking.get(path);
    if (looked !== undefined) return looked;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (path === '/' && isRead) return this.#findList(request);
    const nothing: HttpRoute = (_request, response) => respondError(response, nothingAt(path, this.#paths(undefined)));
    if (this.#parts.listener.access.auth === undefined) return { audience: 'anybody', route: nothing };
    if (this.#named.size === 0) return { audience: 'anybody', route: nothing };
    // Only authenticated callers may learn if a server with that name exists.
    const endpoints = endpointsBelow(this.#parts.listener.endpoints, segmentOf(this.#withoutWellKnown(path)));
    const { authenticator, publicRoutes } = this.#parts.authentication.forEndpoints(endpoints);
    const document = publicRoutes.get(path);
    if (document !== undefined) return { audience: 'anybody', route: document };
    return { audience: authenticator, route: this.#unknown };
  }

  /** Responds to a caller for whom nothing exists at a path. */
  readonly #unknown: HttpRoute = (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    respondError(response, nothingAt(path, this.#paths(principalOf(request))));
  };

  /** Returns the paths of the servers that exist for this caller; undefined: the caller is unknown. */
  #paths(principal: string | undefined): readonly string[] {
    const own = pathsOf(this.#parts.listener.endpoints);
    const named = this.#listedFor(principal).map(({ endpoints }) => endpoints.path);
    return [...(this.#unnamed?.isListed === true ? own : []), ...named];
  }

  #listedFor(principal: string | undefined): readonly ListedServer[] {
    if (principal === undefined && this.#parts.listener.access.auth !== undefined) return [];
    const listed = [...this.#named.values()].filter(({ isListed }) => isListed);
    return principal === undefined ? listed : listed.filter((server) => server.isFor(principal));
  }

  // ---- the list itself

  #findList(request: IncomingMessage): FoundRoute {
    const isAsked = this.#parts.listener.access.auth !== undefined;
    if (isBrowserNavigation(request)) {
      const page: HttpRoute = (called, response) =>
        respondText(response, 200, this.#renderPage(called, isAsked && this.#named.size > 0));
      return { audience: 'anybody', route: page };
    }
    if (this.#named.size === 0) {
      return {
        audience: 'anybody',
        route: (_called, response) => respondError(response, nothingAt('/', this.#paths(undefined))),
      };
    }
    const list: HttpRoute = (called, response) =>
      respondJson(response, 200, { servers: this.#describe(called, principalOf(called)) });
    return { audience: this.#authenticator(), route: list };
  }

  #renderPage(request: IncomingMessage, hidesSome: boolean): string {
    const { listener, looking } = this.#parts;
    const status = looking.has('/status') ? publicUrlOf(listener)('/status', request) : undefined;
    return renderPage(this.#describe(request, undefined), { hidesSome, status });
  }

  #describe(request: IncomingMessage, principal: string | undefined): readonly DescribedServer[] {
    const { listener } = this.#parts;
    const servers = [...(this.#unnamed?.isListed === true ? [this.#unnamed] : []), ...this.#listedFor(principal)];
    return servers.map((server) => {
      const { endpoints, config } = server;
      const url = publicUrlOf({ ...listener, endpoints });
      return {
        ...(isNamed(config) && { name: nameServer(config) }),
        url: url(endpoints.path, request),
        ...(endpoints.httpSse === 'served' && { sseUrl: url(endpoints.ssePath, request) }),
        ready: unreadinessOf(server.readiness()) === undefined,
      };
    });
  }

  /** Authenticates routes about all servers: a token for any of them is accepted. */
  #authenticator(): Authenticator {
    const { authentication, listener } = this.#parts;
    const all = [...this.#named.values()].map(({ endpoints }) => endpoints);
    return authentication.anywhere([listener.endpoints, ...all]);
  }

  // ---- readiness

  /** Returns the readiness route of a server, for callers of that server. */
  #readinessOf(server: ListedServer): FoundRoute {
    const sources = {
      readiness: () => (this.#isDraining ? ENDING : server.readiness()),
      hasCapacity: () => server.hasCapacity,
      isAtHubs: () => server.isAtHubs,
      hasStore: () => this.#parts.replica?.isStoreAvailable ?? true,
    };
    const route: HttpRoute = (request, response, query) => {
      if (server.isFor(principalOf(request))) respondReadiness(response, sources);
      else this.#unknown(request, response, query);
    };
    return { audience: server.authentication.authenticator, route };
  }

  #readiness(): Readiness {
    if (this.#isDraining) return ENDING;
    const shared = this.#parts.replica?.readiness() ?? READY;
    if (shared.state !== 'ready') return shared;
    const unready = this.#unready()?.readiness();
    // One that is starting is ready for clients, which wait for it.
    const starting = this.#required()
      .map((server) => server.readiness())
      .find(({ state }) => state === 'starting');
    return unready ?? starting ?? READY;
  }

  /** Returns the first required server that is not ready. */
  #unready(): ListedServer | undefined {
    return this.#required().find((server) => unreadinessOf(server.readiness()) !== undefined);
  }

  #required(): readonly ListedServer[] {
    return this.#listed().filter(({ config: { listing } }) => listing === undefined || listing.isRequired);
  }

  // ---- the end

  /** Makes the bridge report that it is not ready. New requests are still served. */
  beginEnding(): void {
    this.#isDraining = true;
    this.#callsHubs = false;
  }

  override drain(graceMs: number): Promise<void> {
    this.beginEnding();
    return super.drain(graceMs);
  }

  protected override parts(): readonly ListedServer[] {
    return [...(this.#unnamed === undefined ? [] : [this.#unnamed]), ...this.#named.values()];
  }
}

/** The members of the aggregate, which its dialer watches. */
class ListedMembers implements Members {
  all: readonly Member[] = [];
  readonly #watchers = new Set<() => void>();

  onChange(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }

  replace(members: readonly Member[]): void {
    const isSame = members.length === this.all.length && members.every((member, index) => member === this.all[index]);
    if (isSame) return;
    this.all = members;
    for (const changed of [...this.#watchers]) changed();
  }
}

/** Returns true if all hubs are connected; undefined: no server has a hub. */
function areAtHubs(servers: readonly ListedServer[]): boolean | undefined {
  const known = servers.flatMap(({ isAtHubs }) => (isAtHubs === undefined ? [] : [isAtHubs]));
  return known.length === 0 ? undefined : known.every((isConnected) => isConnected);
}

interface DescribedServer {
  /** Name of the server, `aggregate` for that of all others together; missing for the server of the command line. */
  readonly name?: string;
  readonly url: string;
  readonly sseUrl?: string;
  readonly ready: boolean;
}

const READYZ = '/readyz';
const ENDING: Readiness = { state: 'stopped', error: SHUTTING_DOWN, sinceMs: 0, dialing: 'refused' };

function segmentOf(path: string): string {
  const end = path.indexOf('/', 1);
  return end < 0 ? path.slice(1) : path.slice(1, end);
}

/** Only the server of the command line has no name of its own. */
function isNamed({ listing, target }: ServerConfig): boolean {
  return listing !== undefined || target.kind === 'aggregate';
}

function nameOf(config: ServerConfig): string {
  return isNamed(config) ? nameServer(config) : 'the server of the command line';
}

/** Limit of the paths in an error, so that a mistyped name does not fill the screen. */
const MAX_SHOWN = 20;

function nothingAt(path: string, known: readonly string[]): BridgeError {
  const shown = known.slice(0, MAX_SHOWN).join(', ');
  const more = known.length > MAX_SHOWN ? ` and ${known.length - MAX_SHOWN} more` : '';
  const hint = known.length === 0 ? '' : `; try ${shown}${more}`;
  return new BridgeError('ERR_HTTP_PATH', `Nothing is served at ${JSON.stringify(path.slice(0, 100))}${hint}.`);
}

function renderPage(
  servers: readonly DescribedServer[],
  { hidesSome, status }: { readonly hidesSome: boolean; readonly status: string | undefined },
): string {
  const width = Math.max(15, ...servers.map(({ name = '' }) => name.length));
  const lines = servers.flatMap(({ name, url, sseUrl }) =>
    name === undefined
      ? [
          `  ${'Streamable HTTP'.padEnd(width)}  ${url}`,
          ...(sseUrl === undefined ? [] : [`  ${'HTTP+SSE'.padEnd(width)}  ${sseUrl}`]),
        ]
      : [`  ${name.padEnd(width)}  ${url}`],
  );
  return [
    'This is mcp-portage: it serves MCP servers (Model Context Protocol) over HTTP.',
    ...(servers.length === 0 ? [] : ['A browser cannot use them. Give these addresses to MCP clients:', '', ...lines]),
    ...(hidesSome ? ['Which servers there are is told to known callers: send a token with GET /.'] : []),
    ...(status === undefined ? [] : ['', `Who uses them, and what runs: ${status}`]),
    '',
    'More: npx mcp-portage --help, and https://modelcontextprotocol.io for what MCP is.',
    '',
  ].join('\n');
}
