import type { QueueSizes } from '../collections/queue-sizes.ts';
import type { EndpointConfig, HttpListenerConfig } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { ByteStreamClients } from '../downstream/byte-stream/clients.ts';
import type { GrpcCall } from '../downstream/grpc/call.ts';
import type { GrpcEndpoint } from '../downstream/grpc/endpoint.ts';
import type { LiveStreams } from '../downstream/http/response-writer.ts';
import type { HttpRoute } from '../downstream/listener/http-server.ts';
import type { ServedAtBroker } from '../downstream/mqtt/endpoint.ts';
import type { WebSocketEndpoint } from '../downstream/websocket/endpoint.ts';
import { type BridgeError, SHUTTING_DOWN } from '../errors.ts';
import type { CallerToken } from '../http/auth/caller-token.ts';
import type { BodyBudget } from '../http/server/read-body.ts';
import type { InspectedServer } from '../observe/inspection.ts';
import type { CallRegistry } from '../relay/call-registry.ts';
import type { Calls } from '../relay/calls.ts';
import type { CallerDialers } from '../relay/ports.ts';
import type { Readiness } from '../relay/readiness.ts';
import type { SessionRegistry } from '../relay/sessions/session-registry.ts';
import type { ReplicatedServer } from '../replicas/replicated-server.ts';
import type { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { describeCallers } from './caller-policy.ts';
import { createModernCalls, createSessions } from './create-registries.ts';
import {
  type CallerTokens,
  createGrpcEndpoint,
  createKnowCaller,
  createRoutes,
  createWebSocketEndpoint,
  type KnowCaller,
  type RoutedServer,
  withKnownCallers,
} from './create-routes.ts';
import type { Part } from './lifecycle.ts';

/** The dialers of one server, and its shares of what all servers have in common. */
export interface DialedServer {
  /** Dialers for clients with a session. */
  readonly sessionDialers: CallerDialers;
  /** Dialers for self-contained requests. */
  readonly callDialers: CallerDialers;
  /** Is told of the tokens that callers show; undefined: nothing is made of them. */
  readonly callerTokens: CallerTokens | undefined;
  readonly calls: Calls;
  /** Marks that this bridge and its replicas send with requests to servers. */
  readonly ownMarks: () => readonly string[];
  /** Limits the bytes of messages for this server that are still being read. */
  readonly bodies: BodyBudget;
  /** Numbers of its running processes, and of those that ended unexpectedly. */
  readonly processes: Pick<ChildLimit, 'running' | 'failed'>;
  /** The server as all replicas serve it; undefined: there are no others. */
  readonly replicated: ReplicatedServer | undefined;
  /** Sizes of its queues. */
  readonly queues: QueueSizes;
  /** Ends its processes and connections. */
  close(): Promise<void>;
}

export interface ServedServerOptions {
  readonly config: ServerConfig;
  readonly listener: HttpListenerConfig;
  /** Paths at which it is served. */
  readonly endpoints: EndpointConfig;
  readonly dialed: DialedServer;
  readonly live: LiveStreams;
  readonly deps: Deps;
}

/** The part of a server's inspection that only a running server has. */
export type InspectedPart = Pick<
  InspectedServer,
  'sessions' | 'openCalls' | 'processes' | 'restarts' | 'verdicts' | 'queues'
>;

/** Clients that the server has at a hub, over one connection of the bridge. */
export interface HubClients {
  /** Answers new clients with this reason. */
  refuse(reason: BridgeError): void;
  /** Ends all sessions, and the connection. Resolves when that is closed. */
  close(reason: BridgeError): Promise<void>;
}

/** A running server as clients of a listener use it: their sessions and calls, and its routes. */
export class ServedServer implements Part {
  readonly sessions: SessionRegistry;
  readonly modernCalls: CallRegistry;
  readonly webSockets: WebSocketEndpoint;
  /** Clients on byte streams. */
  readonly streams: ByteStreamClients;
  readonly routes: ReadonlyMap<string, HttpRoute>;
  /** What clients at a broker are served with. */
  readonly clients: ServedAtBroker;
  readonly #atHubs = new Set<HubClients>();
  readonly #dialed: DialedServer;
  readonly #served: RoutedServer;
  readonly #knowCaller: KnowCaller | undefined;
  readonly #deps: Deps;
  /** Clients over gRPC; undefined until there is one. */
  #grpc: Promise<GrpcEndpoint> | undefined;
  #refusal: BridgeError | undefined;

  constructor({ config, listener, endpoints, dialed, live, deps }: ServedServerOptions) {
    const { sessionDialers, callDialers, calls, bodies, replicated, ownMarks } = dialed;
    this.#dialed = dialed;
    const callers = describeCallers(listener, config);
    const parts = { calls, deps, shared: replicated?.state };
    this.sessions = createSessions(config, { ...parts, dialers: sessionDialers });
    this.modernCalls = createModernCalls({ ...config, callers }, { ...parts, dialers: callDialers });
    const { maxMessageBytes, maxJsonDepth, requestTimeoutMs: untakenTimeoutMs } = config.limits;
    const limits = { maxMessageBytes, maxJsonDepth, untakenTimeoutMs };
    const served = { ...config, callers, listener: { ...listener, endpoints } };
    this.#served = served;
    this.#deps = deps;
    this.streams = new ByteStreamClients({ sessions: this.sessions, bodies, ...limits, deps });
    this.webSockets = createWebSocketEndpoint(served, { deps, bodies, sessions: this.sessions });
    const { routes, streamable } = createRoutes(served, {
      deps,
      bodies,
      sessions: this.sessions,
      modernCalls: this.modernCalls,
      webSockets: this.webSockets,
      live,
      placement: replicated,
    });
    const { sessions, modernCalls } = this;
    this.clients = { sessions, bodies, ...limits, maxClients: config.sessions.maxSessions, ownMarks };
    replicated?.begin({ sessions, modernCalls, restore: (...session) => streamable.restore(...session) });
    const knowCaller = createKnowCaller(config.mapHeaders, dialed.callerTokens);
    this.#knowCaller = knowCaller;
    this.routes = new Map([...routes].map(([path, route]) => [path, withKnownCallers(route, knowCaller)]));
  }

  /** Serves a client over gRPC, which was admitted. */
  async takeGrpc(call: GrpcCall): Promise<void> {
    const refusal = this.#refusal ?? this.#knowCaller?.(call.request);
    if (refusal !== undefined) return call.refuse(refusal);
    const { sessions } = this;
    const { bodies } = this.#dialed;
    this.#grpc ??= createGrpcEndpoint(this.#served, { sessions, bodies, deps: this.#deps });
    const endpoint = await this.#grpc;
    // The server may have begun to end meanwhile.
    if (this.#refusal !== undefined) endpoint.refuse(this.#refusal);
    endpoint.serve(call);
  }

  #refuseGrpc(reason: BridgeError): void {
    this.#refusal ??= reason;
    void this.#grpc?.then((endpoint) => endpoint.refuse(reason));
  }

  /** Takes note of a token that a caller has shown at the aggregate. */
  noteToken(token: CallerToken): void {
    this.#dialed.callerTokens?.note(token);
  }

  /** Ends these clients with the server, unless they are `gone` before. */
  adopt(clients: HubClients, gone: Promise<void>): void {
    this.#atHubs.add(clients);
    void gone.then(() => this.#atHubs.delete(clients));
  }

  inspect(): InspectedPart {
    const { calls, processes, queues } = this.#dialed;
    const requests = { queue: 'large_requests', items: undefined, bytes: calls.largeRequestBytes };
    return {
      sessions: this.sessions.size,
      openCalls: calls.size,
      processes: processes.running,
      restarts: processes.failed,
      verdicts: calls.speech.all,
      queues: [requests, ...queues.sizes],
    };
  }

  readiness(): Readiness {
    return this.#dialed.sessionDialers.readiness();
  }

  get hasCapacity(): boolean {
    return this.sessions.hasCapacity;
  }

  /** Takes no new calls. Resolves when open ones have ended or the grace time is over. */
  async drain(graceMs: number): Promise<void> {
    this.webSockets.refuse(SHUTTING_DOWN);
    this.#refuseGrpc(SHUTTING_DOWN);
    for (const clients of this.#atHubs) clients.refuse(SHUTTING_DOWN);
    // Parked calls wait for answers that other replicas forward.
    const { replicated, queues } = this.#dialed;
    const isAwaited = (): boolean => replicated !== undefined && queues.itemsIn('parked_calls') > 0;
    await Promise.all([this.sessions.drain(graceMs), this.modernCalls.drain(graceMs, isAwaited)]);
  }

  /**
   * Retires this instance, which another replaces: open calls and sessions may end within the grace time, and then its
   * processes end. Requests with the id of one of its sessions still belong to it.
   */
  async retire(graceMs: number, reason: BridgeError): Promise<void> {
    for (const clients of this.#atHubs) clients.refuse(reason);
    await Promise.all([
      this.sessions.retire(graceMs, reason),
      this.modernCalls.drain(graceMs),
      this.streams.retire(graceMs, reason),
    ]);
    await this.close(reason);
  }

  /** Streams over HTTP stay until the listener closes, for the server's last messages. */
  async close(reason: BridgeError): Promise<void> {
    this.sessions.close(reason);
    this.modernCalls.close(reason);
    this.#dialed.replicated?.end();
    this.streams.close(reason);
    const lastWords = this.webSockets.close(reason);
    this.#refusal ??= reason;
    const lastMessages = this.#grpc?.then((endpoint) => endpoint.close(reason));
    const atHubs = [...this.#atHubs].map((clients) => clients.close(reason));
    await Promise.all([this.#dialed.close(), lastWords, lastMessages, ...atHubs]);
  }

  killNow(): void {
    this.#dialed.sessionDialers.killNow();
  }
}
