import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Member } from '../aggregate/members.ts';
import { RecentNames } from '../collections/bounded-collections.ts';
import { sumOfQueues } from '../collections/queue-sizes.ts';
import type { EndpointConfig, HttpListenerConfig } from '../config/listener.ts';
import type { HubConfig, ServerConfig } from '../config/server.ts';
import { fingerprint } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { StreamReach } from '../downstream/byte-stream/endpoint.ts';
import { refuseSocket } from '../downstream/byte-stream/listener.ts';
import type { GrpcCall } from '../downstream/grpc/call.ts';
import type { LiveStreams } from '../downstream/http/response-writer.ts';
import { addressOf, isBrowserNavigation } from '../downstream/listener/browser-page.ts';
import type { FoundRoute, HttpRoute } from '../downstream/listener/http-server.ts';
import { assertNever, BridgeError, toBridgeError } from '../errors.ts';
import type { CallerToken } from '../http/auth/caller-token.ts';
import { ANONYMOUS, principalOf } from '../http/auth/callers.ts';
import { respondError } from '../http/server/respond.ts';
import type { InspectedServer } from '../observe/inspection.ts';
import { type NotReady, READY, type Readiness } from '../relay/readiness.ts';
import type { Replica } from '../replicas/replica.ts';
import type { Authentication, EndpointAuthentication } from './create-authentication.ts';
import { nameServer } from './create-dialer.ts';
import { createMember } from './create-member.ts';
import { createRouteTable, endpointsBelow, type RouteTable, sessionIdOf } from './create-routes.ts';
import type { DialServer } from './dial-server.ts';
import type { Hub, HubCall } from './hub-call.ts';
import { Composite } from './lifecycle.ts';
import { type InspectedPart, ServedServer } from './served-server.ts';

/**
 * Time for open calls and sessions when a server's configuration is replaced: longer than most calls, but short enough
 * that clients that never stop calling do not keep an old configuration in use.
 */
const RETIREMENT_MS = 60_000;
/** Limits of the tokens that are kept for a server until it has started, which takes seconds. */
const KEPT_TOKENS = { count: 1000, length: 8 * 2 ** 20 };
const REPLACED = new BridgeError(
  'ERR_SESSION_CLOSED',
  'The configuration of this server has changed; open a new session.',
);

export const NOT_SERVED = new BridgeError('ERR_SESSION_CLOSED', 'No server is served at this address anymore.');

export interface ListedServerParts {
  readonly listener: HttpListenerConfig;
  readonly authentication: Authentication;
  /** Creates the dialers of a server, without starting a process or a connection. */
  readonly dial: DialServer;
  readonly live: LiveStreams;
  /** This bridge as one of several replicas; undefined: there are no others. */
  readonly replica: Replica | undefined;
  readonly deps: Deps;
  /** Responds to callers for whom the server does not exist. */
  readonly unknown: HttpRoute;
}

/**
 * - `idle`: not started since it was listed, or since its configuration has changed. The first request starts it.
 * - `starting`: its instance is being created. `failure` is the error of the attempt before this one.
 * - `failed`: it could not be started. The next request tries again.
 * - `serving`: it is running with the current configuration.
 * - `removed`: it is not in the list anymore.
 */
type ListedState =
  | { readonly kind: 'idle' }
  | {
      readonly kind: 'starting';
      readonly started: Promise<ServedServer>;
      readonly failure: NotReady | undefined;
    }
  | { readonly kind: 'failed'; readonly failure: NotReady }
  | { readonly kind: 'serving'; readonly served: ServedServer }
  | { readonly kind: 'removed' };

/** Hubs are called from the start of the bridge until its end, and anew when the configuration changes. */
type Hubs = { readonly kind: 'left' } | { readonly kind: 'called'; readonly calls: readonly HubCall[] };

/**
 * A server behind the listener. It is started by the first request for it. When its configuration changes, a new
 * instance takes over while the calls and sessions of the old one end.
 */
export class ListedServer extends Composite {
  readonly endpoints: EndpointConfig;
  readonly #parts: ListedServerParts;
  #authentication: EndpointAuthentication | undefined;
  #routes: RouteTable | undefined;
  #config: ServerConfig;
  #state: ListedState = { kind: 'idle' };
  #hubs: Hubs = { kind: 'left' };
  #member: Member | undefined;
  /** Tokens that callers have shown at the aggregate while the server was not running; undefined: none. */
  #shownTokens: RecentNames<CallerToken> | undefined;
  /** Instances with an earlier configuration that still have open calls or sessions. */
  readonly #retiring = new Map<ServedServer, Promise<void>>();

  constructor(config: ServerConfig, parts: ListedServerParts) {
    super();
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

  /** The member of the aggregate that the server is with its current configuration; undefined: none. */
  get member(): Member | undefined {
    if (!this.isListed) return undefined;
    this.#member ??= createMember(this.#config, this);
    return this.#member;
  }

  /** Takes note of a token that a caller has shown at the aggregate, if this server exchanges such tokens. */
  noteToken(token: CallerToken): void {
    if (this.#config.remote.exchange === undefined) return;
    const served = this.#served();
    if (served !== undefined) return served.noteToken(token);
    this.#shownTokens ??= new RecentNames(KEPT_TOKENS);
    this.#shownTokens.set(token.caller, token, token.token.length);
  }

  /** Returns the known readiness, without trying the server. A server that was never requested counts as ready. */
  readiness(): Readiness {
    const state = this.#state;
    switch (state.kind) {
      case 'serving':
        return state.served.readiness();
      case 'starting':
      case 'failed':
        return state.failure ?? READY;
      default:
        return READY;
    }
  }

  /** @param url returns the URL of a path of this listener */
  inspect(url: (path: string) => string): InspectedServer {
    const { path, ssePath, wsPath, httpSse, webSocket, sunset } = this.endpoints;
    const known = this.readiness();
    const parts = this.parts().map((served) => served.inspect());
    const sum = (of: (part: InspectedPart) => number) => parts.reduce((total, part) => total + of(part), 0);
    const { clock, wallClock } = this.#parts.deps;
    const sinceMs = known.state === 'ready' ? undefined : wallClock() - (clock.now() - known.sinceMs);
    return {
      name: nameServer(this.#config),
      url: url(path),
      sseUrl: httpSse === 'served' ? url(ssePath) : undefined,
      sunset: sunset?.date,
      wsUrl: webSocket === 'served' ? addressOf({ scheme: 'ws' }, url(wsPath)) : undefined,
      hubs: this.#hubCalls().map((call) => call.inspect()),
      kind: this.#config.target.kind,
      state: known.state === 'ready' && this.#isUnused(parts) ? 'not-started' : known.state,
      sinceMs,
      problem: known.state === 'ready' ? undefined : known.error.message,
      verdicts: parts[0]?.verdicts ?? [],
      sessions: sum(({ sessions }) => sessions),
      openCalls: sum(({ openCalls }) => openCalls),
      processes: sum(({ processes }) => processes),
      restarts: sum(({ restarts }) => restarts),
      queues: sumOfQueues(parts.flatMap(({ queues }) => queues)),
    };
  }

  /**
   * True if no client has used the server, as far as that shows: no process was started, and no connection made. The
   * aggregate has neither.
   */
  #isUnused(parts: readonly InspectedPart[]): boolean {
    if (this.#config.target.kind === 'aggregate') return false;
    return parts.every(({ processes, restarts, verdicts }) => processes + restarts + verdicts.length === 0);
  }

  get hasCapacity(): boolean {
    return this.#served()?.hasCapacity ?? true;
  }

  /**
   * Returns the running instance, which the first caller starts. Rejects with a BridgeError if it cannot be started
   * now.
   */
  async start(): Promise<ServedServer> {
    const state = this.#state;
    switch (state.kind) {
      case 'serving':
        return state.served;
      case 'starting':
        return state.started;
      case 'removed':
        throw NOT_SERVED;
      case 'idle':
      case 'failed': {
        const started = this.#start(this.#config);
        const failure = state.kind === 'failed' ? state.failure : undefined;
        const starting: ListedState = { kind: 'starting', started, failure };
        this.#state = starting;
        started.then(
          (served) => this.#started(starting, served),
          (thrown: unknown) => {
            if (this.#state === starting) this.#failed(toBridgeError(thrown), failure?.sinceMs);
          },
        );
        return started;
      }
      default:
        return assertNever(state);
    }
  }

  async #start(config: ServerConfig): Promise<ServedServer> {
    const { listener, dial, live } = this.#parts;
    const deps = this.#deps();
    try {
      const dialed = await dial(config, deps);
      return new ServedServer({ config, listener, endpoints: this.endpoints, dialed, live, deps });
    } catch (thrown) {
      throw toBridgeError(thrown);
    }
  }

  #failed(error: BridgeError, sinceMs = this.#parts.deps.clock.now()): void {
    this.#state = { kind: 'failed', failure: { state: 'failing', error, sinceMs, dialing: 'refused' } };
  }

  /** The configuration may have changed during the start, or the server may have been removed. */
  #started(starting: ListedState, served: ServedServer): void {
    if (this.#state !== starting) return this.#retire(served);
    this.#state = { kind: 'serving', served };
    for (const [, token] of this.#shownTokens ?? []) served.noteToken(token);
    this.#shownTokens = undefined;
  }

  /** The running instance with the current configuration. */
  get running(): ServedServer | undefined {
    return this.#served();
  }

  #served(): ServedServer | undefined {
    return this.#state.kind === 'serving' ? this.#state.served : undefined;
  }

  // ---- hubs

  /**
   * Connects to the hubs at which the server is also to be served. Throws BridgeError ERR_CONFIG_OPTION for a
   * certificate that cannot be used.
   */
  async callHubs(): Promise<void> {
    const { hubs } = this.#config;
    const wanted: Hubs = { kind: 'called', calls: this.#hubCalls() };
    this.#hubs = wanted;
    if (hubs.length === 0 || wanted.calls.length > 0) return;
    // Loaded on demand, since few servers use hubs.
    const { HubCall } = await import('./hub-call.ts');
    const deps = this.#deps();
    const called = await Promise.all(hubs.map((hub) => this.#createHub(hub, deps)));
    // The server may have left its hubs meanwhile, or may have to call others.
    if (this.#hubs !== wanted) return;
    const calls = called.map((hub) => new HubCall({ hub, deps, random: Math.random }));
    this.#hubs = { kind: 'called', calls };
  }

  async #createHub(hub: HubConfig, deps: Deps): Promise<Hub> {
    switch (hub.kind) {
      case 'websocket': {
        const { WebSocketHub } = await import('./web-socket-hub.ts');
        const { maxMessageBytes } = this.#config.limits;
        const endpoint = () => this.start().then(({ webSockets }) => webSockets);
        return new WebSocketHub({ hub, maxMessageBytes, endpoint, deps });
      }
      case 'mqtt': {
        const { MqttHub } = await import('./mqtt-hub.ts');
        const description = `${nameServer(this.#config)}, an MCP server`;
        return new MqttHub({ hub, description, server: () => this.start(), deps });
      }
      default:
        return assertNever(hub);
    }
  }

  /** Calls the hubs and only logs an error: a mistake in a changed configuration must not end what is running. */
  callHubsAnew(): void {
    this.callHubs().catch((thrown: unknown) => {
      const error = toBridgeError(thrown);
      this.#deps().log.error({ code: error.code }, error.message);
    });
  }

  #hubCalls(): readonly HubCall[] {
    return this.#hubs.kind === 'called' ? this.#hubs.calls : [];
  }

  /** Stops calling hubs. Open connections stay for now. */
  leaveHubs(): void {
    for (const call of this.#hubCalls()) call.close();
    this.#hubs = { kind: 'left' };
  }

  /** True if the server is connected to all of its hubs; undefined: it has none. */
  get isAtHubs(): boolean | undefined {
    const calls = this.#hubCalls();
    if (calls.length === 0) return undefined;
    return calls.every((call) => call.inspect().state === 'connected');
  }

  get isListed(): boolean {
    return this.#state.kind !== 'removed';
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
    const isSame = this.isListed && fingerprint(config) === fingerprint(this.#config);
    if (isSame) return false;
    const served = this.#served();
    this.#config = config;
    this.#member = undefined;
    this.#state = { kind: 'idle' };
    if (served !== undefined) this.#retire(served);
    if (this.#hubs.kind === 'called') {
      this.leaveHubs();
      this.callHubsAnew();
    }
    return true;
  }

  #retire(served: ServedServer): void {
    const retired = served.retire(RETIREMENT_MS, REPLACED).finally(() => this.#retiring.delete(served));
    this.#retiring.set(served, retired);
  }

  /** Removes the server from the list. Resolves when its calls and sessions have ended. */
  async remove(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: 'removed' };
    this.leaveHubs();
    if (state.kind === 'serving') this.#retire(state.served);
    // An instance that has just started retires, too.
    if (state.kind === 'starting') await state.started.catch(() => undefined);
    await Promise.all(this.#retiring.values());
  }

  #routeAt(path: string): HttpRoute {
    return (request, response, query) => {
      if (!this.isFor(principalOf(request))) return this.#parts.unknown(request, response, query);
      const served = this.#retiring.size > 0 ? this.#servedFor(request, query) : this.#served();
      if (served === undefined && !this.isListed) return this.#parts.unknown(request, response, query);
      if (served === undefined) return this.#startFor(path, request, response, query);
      served.routes.get(path)?.(request, response, query);
    };
  }

  /** Returns the instance that has the request's session, or else the current one. */
  #servedFor(request: IncomingMessage, query: URLSearchParams): ServedServer | undefined {
    const id = sessionIdOf(request, query);
    if (id === undefined) return this.#served();
    for (const served of this.#retiring.keys()) if (served.sessions.has(id)) return served;
    return this.#served();
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
    if (!this.isFor(ANONYMOUS) || !this.isListed) return refuseSocket(socket, NOT_SERVED, deps);
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

  /** Serves a new client over gRPC, which was admitted. */
  takeGrpc(call: GrpcCall): void {
    if (!this.isListed || !this.isFor(principalOf(call.request))) return call.refuse(NOT_SERVED);
    const isRefused = (thrown: unknown): void => {
      const error = toBridgeError(thrown);
      this.#deps().log.warn({ code: error.code }, error.message);
      call.refuse(error);
    };
    this.start()
      .then((served) => served.takeGrpc(call))
      .catch(isRefused);
  }

  // ---- the end of the bridge

  override drain(graceMs: number): Promise<void> {
    this.leaveHubs();
    return super.drain(graceMs);
  }

  override async close(reason: BridgeError): Promise<void> {
    this.leaveHubs();
    const closing = super.close(reason);
    if (this.#state.kind === 'starting') {
      await this.#state.started.then(
        (served) => served.close(reason),
        () => undefined,
      );
    }
    await closing;
  }

  /** The running instance and those that retire. */
  protected override parts(): readonly ServedServer[] {
    const served = this.#served();
    return [...(served === undefined ? [] : [served]), ...this.#retiring.keys()];
  }
}
