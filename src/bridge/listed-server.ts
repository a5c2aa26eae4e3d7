import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { sumOfQueues } from '../collections/queue-sizes.ts';
import type { EndpointConfig, HttpListenerConfig } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import { fingerprint } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { StreamReach } from '../downstream/byte-stream/endpoint.ts';
import { refuseSocket } from '../downstream/byte-stream/listener.ts';
import type { LiveStreams } from '../downstream/http/response-writer.ts';
import { addressOf, isBrowserNavigation } from '../downstream/listener/browser-page.ts';
import type { FoundRoute, HttpRoute } from '../downstream/listener/http-server.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import { ANONYMOUS, principalOf } from '../http/auth/callers.ts';
import { respondError } from '../http/server/respond.ts';
import type { InspectedServer } from '../observe/inspection.ts';
import type { Readiness } from '../relay/ports.ts';
import type { Replica } from '../replicas/replica.ts';
import type { Authentication, EndpointAuthentication } from './create-authentication.ts';
import { nameServer } from './create-dialer.ts';
import { createRouteTable, endpointsBelow, type RouteTable, sessionIdOf } from './create-routes.ts';
import type { HubCall } from './hub-call.ts';
import { type DialledServer, type InspectedPart, ServedServer } from './served-server.ts';

/**
 * Time for open calls and sessions when a server's configuration is replaced: longer than most calls, but short enough
 * that clients that never stop calling do not keep an old configuration in use.
 */
const RETIREMENT_MS = 60_000;
const REPLACED = new BridgeError(
  'ERR_SESSION_CLOSED',
  'The configuration of this server has changed; open a new session.',
);

export const NOT_FOR_STREAMS = new BridgeError('ERR_SESSION_CLOSED', 'No server is served at this address any more.');

export interface ListedServerParts {
  readonly listener: HttpListenerConfig;
  readonly authentication: Authentication;
  /** Creates the dialers of a server, without starting a process or a connection. */
  readonly dial: (server: ServerConfig, deps: Deps) => Promise<DialledServer>;
  readonly live: LiveStreams;
  /** This bridge as one of several replicas; undefined: there are no others. */
  readonly replica: Replica | undefined;
  readonly deps: Deps;
  /** Responds to callers for whom the server does not exist. */
  readonly unknown: HttpRoute;
}

/**
 * A server behind the listener. It is started by the first request for it. When its configuration changes, a new
 * instance takes over while the calls and sessions of the old one end.
 */
export class ListedServer {
  readonly endpoints: EndpointConfig;
  readonly #parts: ListedServerParts;
  #authentication: EndpointAuthentication | undefined;
  #routes: RouteTable | undefined;
  #config: ServerConfig;
  #served: ServedServer | undefined;
  #starting: Promise<ServedServer> | undefined;
  /** Error of the latest start, if it failed. */
  #failure: BridgeError | undefined;
  /** True while the server is in the list and serves clients. */
  #isListed = true;
  /** True while hubs are to be called: from the start until the end, and again after a change of the configuration. */
  #callsHubs = false;
  #hubCalls: readonly HubCall[] = [];
  /** Instances with an earlier configuration that still have open calls or sessions. */
  readonly #retiring = new Map<ServedServer, Promise<void>>();

  constructor(config: ServerConfig, parts: ListedServerParts) {
    const { listener } = parts;
    this.#config = config;
    this.#parts = parts;
    const { listing } = config;
    this.endpoints = listing === undefined ? listener.endpoints : endpointsBelow(listener.endpoints, listing.segment);
  }

  get authentication(): EndpointAuthentication {
    this.#authentication ??= this.#parts.authentication.forEndpoints(this.endpoints);
    return this.#authentication;
  }

  get config(): ServerConfig {
    return this.#config;
  }

  find(request: IncomingMessage, path: string): FoundRoute | undefined {
    this.#routes ??= this.#createRoutes();
    const isForPeople = request.method !== 'POST' && isBrowserNavigation(request);
    const page = isForPeople ? this.#routes.pages.get(path) : undefined;
    return page ?? this.#routes.routes.get(path);
  }

  #createRoutes(): RouteTable {
    const listener = { ...this.#parts.listener, endpoints: this.endpoints };
    const isHidden = this.#config.listing !== undefined && listener.access.auth !== undefined;
    return createRouteTable(listener, {
      authentication: this.authentication,
      knownTo: isHidden ? 'callers' : 'anybody',
      routeAt: (path) => this.#routeAt(path),
      onlyForCallers: (route) => (request, response, query) => {
        if (this.isFor(principalOf(request))) route(request, response, query);
        else this.#parts.unknown(request, response, query);
      },
    });
  }

  /** Returns true if the server exists for this caller. */
  isFor(principal: string): boolean {
    const callers = this.#config.listing?.callers;
    return callers === undefined || callers.includes(principal);
  }

  /** Returns the known readiness, without trying the server. A server that was never requested counts as ready. */
  readiness(): Readiness {
    if (this.#served !== undefined) return this.#served.readiness();
    return this.#failure === undefined ? { state: 'ready' } : { state: 'refused', error: this.#failure };
  }

  /** @param url returns the URL of a path of this listener */
  inspect(url: (path: string) => string): InspectedServer {
    const { path, ssePath, wsPath, httpSse, webSocket, sunset } = this.endpoints;
    const known = this.readiness();
    const parts = this.#all().map((served) => served.inspect());
    const sum = (of: (part: InspectedPart) => number) => parts.reduce((total, part) => total + of(part), 0);
    const isIdle = this.#served === undefined && known.state === 'ready';
    return {
      name: nameServer(this.#config),
      url: url(path),
      sseUrl: httpSse === 'served' ? url(ssePath) : undefined,
      sunset: sunset?.date,
      wsUrl: webSocket === 'served' ? addressOf({ scheme: 'ws' }, url(wsPath)) : undefined,
      hubs: this.#hubCalls.map((call) => call.inspect()),
      kind: this.#config.target.kind,
      state: isIdle ? 'idle' : known.state,
      problem: known.state === 'ready' ? undefined : known.error.message,
      verdicts: parts[0]?.verdicts ?? [],
      sessions: sum(({ sessions }) => sessions),
      openCalls: sum(({ openCalls }) => openCalls),
      processes: sum(({ processes }) => processes),
      restarts: sum(({ restarts }) => restarts),
      queues: sumOfQueues(parts.flatMap(({ queues }) => queues)),
    };
  }

  get hasCapacity(): boolean {
    return this.#served?.hasCapacity ?? true;
  }

  /**
   * Returns the running instance, which the first caller starts. Rejects with a BridgeError if it cannot be started
   * now.
   */
  start(): Promise<ServedServer> {
    if (this.#served !== undefined) return Promise.resolve(this.#served);
    if (this.#starting !== undefined) return this.#starting;
    const starting = this.#start().finally(() => {
      // A change of the configuration may have begun another start meanwhile.
      if (this.#starting === starting) this.#starting = undefined;
    });
    this.#starting = starting;
    return starting;
  }

  async #start(): Promise<ServedServer> {
    const config = this.#config;
    const { listener, dial, live } = this.#parts;
    const deps = this.#deps();
    try {
      const dialled = await dial(config, deps);
      const { endpoints } = this;
      const served = new ServedServer({ config, listener, endpoints, dialled, live, deps });
      // The configuration may have changed during the start.
      if (config !== this.#config) this.#retire(served);
      else {
        this.#failure = undefined;
        this.#served = served;
      }
      return served;
    } catch (thrown) {
      const failure = toBridgeError(thrown);
      if (config === this.#config) this.#failure = failure;
      throw failure;
    }
  }

  // ---- hubs

  /**
   * Connects to the hubs at which the server is also to be served. Throws BridgeError ERR_CONFIG_OPTION for a
   * certificate that cannot be used.
   */
  async callHubs(): Promise<void> {
    this.#callsHubs = true;
    const config = this.#config;
    if (config.hubs.length === 0 || this.#hubCalls.length > 0) return;
    // Loaded on demand, since few servers use hubs.
    const { HubCall } = await import('./hub-call.ts');
    if (!this.#callsHubs || config !== this.#config || this.#hubCalls.length > 0) return;
    const { maxMessageBytes } = config.limits;
    const endpoint = () => this.start().then(({ webSockets }) => webSockets);
    const deps = this.#deps();
    this.#hubCalls = config.hubs.map(
      (hub) => new HubCall({ hub, maxMessageBytes, endpoint, deps, random: Math.random }),
    );
  }

  /** Calls the hubs and only logs an error: a mistake in a changed configuration must not end what is running. */
  callHubsAnew(): void {
    this.callHubs().catch((thrown: unknown) => {
      const error = toBridgeError(thrown);
      this.#deps().log.error({ code: error.code }, error.message);
    });
  }

  #endHubCalls(): void {
    for (const call of this.#hubCalls) call.close();
    this.#hubCalls = [];
  }

  /** Stops calling hubs. Open connections stay for now. */
  leaveHubs(): void {
    this.#callsHubs = false;
    this.#endHubCalls();
  }

  /** True if the server is connected to all of its hubs; undefined: it has none. */
  get isAtHubs(): boolean | undefined {
    if (this.#hubCalls.length === 0) return undefined;
    return this.#hubCalls.every((call) => call.inspect().state === 'connected');
  }

  get isListed(): boolean {
    return this.#isListed;
  }

  /** Returns the dependencies for this server, whose log lines carry its name. */
  #deps(): Deps {
    const { replica } = this.#parts;
    const { listing } = this.#config;
    // Session ids name the replica that a client has to come back to.
    const deps = replica === undefined ? this.#parts.deps : replica.depsWithIds(this.#parts.deps);
    return listing === undefined ? deps : { ...deps, log: deps.log.child({ server: listing.name }) };
  }

  /**
   * Replaces the configuration; open calls and sessions continue for a while, and new ones use the new instance.
   * Returns true if anything has changed.
   */
  update(config: ServerConfig): boolean {
    const isSame = this.#isListed && fingerprint(config) === fingerprint(this.#config);
    if (isSame) return false;
    this.#isListed = true;
    this.#config = config;
    this.#failure = undefined;
    this.#endHubCalls();
    if (this.#served !== undefined) this.#retire(this.#served);
    this.#served = undefined;
    this.#starting = undefined;
    if (this.#callsHubs) this.callHubsAnew();
    return true;
  }

  #retire(served: ServedServer): void {
    const retired = served.retire(RETIREMENT_MS, REPLACED).finally(() => this.#retiring.delete(served));
    this.#retiring.set(served, retired);
  }

  /** Removes the server from the list. Resolves when its calls and sessions have ended. */
  async remove(): Promise<void> {
    this.#isListed = false;
    this.leaveHubs();
    await this.#starting?.catch(() => undefined);
    if (this.#served !== undefined && !this.#isListed) {
      this.#retire(this.#served);
      this.#served = undefined;
    }
    await Promise.all(this.#retiring.values());
  }

  #routeAt(path: string): HttpRoute {
    return (request, response, query) => {
      if (!this.isFor(principalOf(request))) return this.#parts.unknown(request, response, query);
      const served = this.#retiring.size > 0 ? this.#servedFor(request, query) : this.#served;
      if (served === undefined && !this.#isListed) return this.#parts.unknown(request, response, query);
      if (served === undefined) return this.#startFor(path, request, response, query);
      served.routes.get(path)?.(request, response, query);
    };
  }

  /** Returns the instance that has the request's session, or else the current one. */
  #servedFor(request: IncomingMessage, query: URLSearchParams): ServedServer | undefined {
    const id = sessionIdOf(request, query);
    if (id === undefined) return this.#served;
    for (const served of this.#retiring.keys()) if (served.sessions.has(id)) return served;
    return this.#served;
  }

  #startFor(path: string, request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    this.start().then(
      (served) => {
        if (!response.destroyed) served.routes.get(path)?.(request, response, query);
      },
      (thrown: unknown) => {
        const error = toBridgeError(thrown);
        this.#deps().log.warn({ code: error.code }, error.message);
        respondError(response, error);
      },
    );
  }

  /** Serves a new client on a byte stream, which is always anonymous. */
  takeStream(socket: Socket, reach: StreamReach): void {
    const { deps } = this.#parts;
    if (!this.isFor(ANONYMOUS) || !this.#isListed) return refuseSocket(socket, NOT_FOR_STREAMS, deps);
    this.start().then(
      (served) => {
        if (!socket.destroyed) served.streams.add(socket, reach);
      },
      (thrown: unknown) => {
        const error = toBridgeError(thrown);
        this.#deps().log.warn({ code: error.code }, error.message);
        refuseSocket(socket, error, deps);
      },
    );
  }

  // ---- the end of the bridge

  async drain(graceMs: number): Promise<void> {
    this.leaveHubs();
    await Promise.all(this.#all().map((served) => served.drain(graceMs)));
  }

  endAll(reason: BridgeError): void {
    for (const served of this.#all()) served.endAll(reason);
  }

  async close(): Promise<void> {
    this.leaveHubs();
    await this.#starting?.catch(() => undefined);
    await Promise.all(this.#all().map((served) => served.close()));
  }

  killNow(): void {
    for (const served of this.#all()) served.killNow();
  }

  #all(): readonly ServedServer[] {
    return [...(this.#served === undefined ? [] : [this.#served]), ...this.#retiring.keys()];
  }
}
