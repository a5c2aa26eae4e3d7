import type { QueueSizes } from '../collections/queue-sizes.ts';
import type { EndpointConfig, HttpListenerConfig } from '../config/listener.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { ByteStreamClients } from '../downstream/byte-stream/clients.ts';
import type { LiveStreams } from '../downstream/http/response-writer.ts';
import type { HttpRoute } from '../downstream/listener/http-server.ts';
import type { WebSocketEndpoint } from '../downstream/websocket/endpoint.ts';
import { type BridgeError, SHUTTING_DOWN } from '../errors.ts';
import type { BodyBudget } from '../http/server/read-body.ts';
import type { InspectedServer } from '../observe/inspection.ts';
import type { CallRegistry } from '../relay/call-registry.ts';
import type { Exchanges } from '../relay/exchanges.ts';
import type { CallerDialers, Readiness } from '../relay/ports.ts';
import type { SessionRegistry } from '../relay/sessions/session-registry.ts';
import type { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { describeCallers } from './caller-policy.ts';
import type { MemberProcesses } from './cluster/member-limits.ts';
import type { Membership, ServerMember } from './cluster/membership.ts';
import { createCalls, createSessions } from './create-registries.ts';
import { type CallerTokens, createRoutes, createWebSocketEndpoint, withKnownCallers } from './create-routes.ts';

/** How one server is reached, and its part of what all servers share. */
export interface DialledServer {
  /** For clients with a session. */
  readonly sessionDialers: CallerDialers;
  /** For requests that stand for themselves. */
  readonly callDialers: CallerDialers;
  /** Is told of the tokens that callers show; undefined: nothing is made of them. */
  readonly callerTokens: CallerTokens | undefined;
  readonly exchanges: Exchanges;
  /** Limits the bytes of messages for this server that are still being read. */
  readonly bodies: BodyBudget;
  /** Its processes, and those that ended though nobody wanted that. */
  readonly processes: Pick<ChildLimit, 'running' | 'failed'>;
  /** Their limit at all replicas together; undefined: there is none. */
  readonly memberProcesses: MemberProcesses | undefined;
  /** What waits for it. */
  readonly queues: QueueSizes;
  /** Ends its processes and connections. */
  close(): Promise<void>;
}

export interface ServedServerOptions {
  readonly config: ServerConfig;
  readonly listener: HttpListenerConfig;
  /** Where it is served. */
  readonly endpoints: EndpointConfig;
  readonly dialled: DialledServer;
  readonly live: LiveStreams;
  /** Undefined: this bridge is the only one. */
  readonly membership: Membership | undefined;
  readonly deps: Deps;
}

/** What is seen of a server that runs. */
export type InspectedPart = Pick<
  InspectedServer,
  'sessions' | 'openCalls' | 'processes' | 'restarts' | 'verdicts' | 'queues'
>;

/** A server as clients of a listener meet it: their sessions and calls, and what is at which path. */
export class ServedServer {
  readonly sessions: SessionRegistry;
  readonly calls: CallRegistry;
  readonly webSockets: WebSocketEndpoint;
  /** Clients that speak lines. */
  readonly streams: ByteStreamClients;
  readonly routes: ReadonlyMap<string, HttpRoute>;
  readonly #dialled: DialledServer;
  #lastWords: Promise<void> | undefined;

  readonly #member: ServerMember | undefined;

  constructor({ config, listener, endpoints, dialled, live, membership, deps }: ServedServerOptions) {
    const { sessionDialers, callDialers, exchanges, bodies } = dialled;
    this.#dialled = dialled;
    const callers = describeCallers(listener, config);
    this.#member = membership?.addServer({
      config,
      callers,
      speech: exchanges.speech,
      processes: dialled.memberProcesses,
      registries: () => this,
      deps,
    });
    const beyond = { storage: this.#member?.storage, widerLimits: this.#member?.limits?.ofSessions };
    this.sessions = createSessions(config, { exchanges, deps, dialers: sessionDialers }, beyond);
    const callParts = { exchanges, deps, dialers: callDialers };
    this.calls = createCalls({ ...config, callers }, callParts, this.#member?.limits?.ofCalls);
    const { maxMessageBytes, maxJsonDepth, requestTimeoutMs: untakenTimeoutMs } = config.limits;
    const limits = { maxMessageBytes, maxJsonDepth, untakenTimeoutMs };
    const served = { ...config, callers, listener: { ...listener, endpoints } };
    this.streams = new ByteStreamClients({ sessions: this.sessions, bodies, ...limits, deps });
    this.webSockets = createWebSocketEndpoint(served, { deps, bodies, sessions: this.sessions });
    const created = createRoutes(served, {
      deps,
      bodies,
      sessions: this.sessions,
      calls: this.calls,
      webSockets: this.webSockets,
      live,
      routeCall: this.#member?.routeCall,
      refuseMoved: this.#member?.refuseMoved,
    });
    const routes = this.#member === undefined ? created.routes : this.#member.lead(created, this.sessions);
    this.routes = new Map(
      [...routes].map(([path, route]) => [path, withKnownCallers(route, config.mapHeaders, dialled.callerTokens)]),
    );
  }

  inspect(): InspectedPart {
    const { exchanges, processes, queues } = this.#dialled;
    const requests = { queue: 'large_requests', items: undefined, bytes: exchanges.largeRequestBytes };
    return {
      sessions: this.sessions.size,
      openCalls: exchanges.size,
      processes: processes.running,
      restarts: processes.failed,
      verdicts: exchanges.speech.all,
      queues: [requests, ...queues.sizes],
    };
  }

  readiness(): Readiness {
    return this.#dialled.sessionDialers.readiness();
  }

  get hasCapacity(): boolean {
    return this.sessions.hasCapacity;
  }

  /** Lets other replicas go on with what they can. */
  handOver(graceMs: number, reason: BridgeError): Promise<void> {
    return this.sessions.handOver(graceMs, reason);
  }

  /** Takes nothing new, and resolves when what is open has ended or the grace time is over. */
  async drain(graceMs: number): Promise<void> {
    this.webSockets.refuse(SHUTTING_DOWN);
    // Other replicas bring the answers that calls wait for.
    const isAwaited = (): boolean => this.#member !== undefined && this.#dialled.queues.itemsIn('parked_calls') > 0;
    await Promise.all([this.sessions.drain(graceMs), this.calls.drain(graceMs, isAwaited)]);
  }

  /**
   * Another takes its place: what is open may end, within the grace time, and then its processes do. What comes with the
   * id of one of its sessions still belongs here.
   */
  async retire(graceMs: number, reason: BridgeError): Promise<void> {
    await Promise.all([
      this.sessions.retire(graceMs, reason),
      this.calls.drain(graceMs),
      this.streams.retire(graceMs, reason),
    ]);
    this.endAll(reason);
    await this.close();
  }

  /** Ends what is still open with this reason; the streams stay until the listener closes, for the last words of the server. */
  endAll(reason: BridgeError): void {
    this.sessions.close(reason);
    this.calls.close(reason);
    this.#member?.close();
    this.streams.close(reason);
    this.#lastWords = this.webSockets.close(reason);
  }

  async close(): Promise<void> {
    await Promise.all([this.#dialled.close(), this.#lastWords]);
  }

  killNow(): void {
    this.#dialled.sessionDialers.killNow();
  }
}
