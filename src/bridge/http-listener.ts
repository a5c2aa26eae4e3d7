import type { HttpListenerConfig, ServerConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import { Admission } from '../downstream/listener/admission.ts';
import { healthRoutes } from '../downstream/listener/health.ts';
import { type CertificateSource, HttpServer, SOCKET_LIMITS } from '../downstream/listener/http-server.ts';
import { LiveStreams } from '../downstream/stream/live-streams.ts';
import { type BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { AccessPolicy } from '../http/server/access-policy.ts';
import type { CallRegistry } from '../relay/call-registry.ts';
import type { Exchanges } from '../relay/exchanges.ts';
import type { CallerDialers, Readiness } from '../relay/ports.ts';
import type { SessionRegistry } from '../relay/session-registry.ts';
import { describeCallers } from './caller-policy.ts';
import type { Authentication } from './create-authentication.ts';
import { createCalls, createSessions } from './create-registries.ts';
import { createRoutes, type Routes } from './create-routes.ts';

/** One server behind the listener, and the ways to it. */
export interface ListedServer {
  readonly config: ServerConfig;
  /** For clients with a session. */
  readonly sessionDialers: CallerDialers;
  /** For requests that stand for themselves. */
  readonly callDialers: CallerDialers;
}

export interface HttpListenerOptions {
  readonly listener: HttpListenerConfig;
  readonly servers: readonly ListedServer[];
  /** Shared by all servers. */
  readonly exchanges: Exchanges;
  readonly authentication: Authentication;
  readonly certificate: CertificateSource | undefined;
  readonly socketLimits?: typeof SOCKET_LIMITS;
  readonly deps: Deps;
}

/** A server as clients over HTTP meet it. */
interface ServedServer {
  readonly sessions: SessionRegistry;
  readonly calls: CallRegistry;
  readonly routes: Routes;
  readonly readiness: () => Readiness;
}

/** Clients of every era on one port: who may come in, what is served where, and how it all ends. */
export class HttpListener {
  readonly live: LiveStreams;
  readonly http: HttpServer;
  readonly served: readonly ServedServer[];
  #isDraining = false;

  constructor(options: HttpListenerOptions) {
    const { listener, authentication, exchanges, deps } = options;
    this.live = new LiveStreams(deps.clock);
    this.served = options.servers.map((server) => this.#serve(server, listener, { exchanges, deps }));
    const policy = new AccessPolicy({ host: listener.host, ...listener.access });
    const routes = this.served.map((served) => served.routes);
    this.http = new HttpServer({
      host: listener.host,
      port: listener.port,
      certificate: options.certificate,
      socketLimits: options.socketLimits ?? { ...SOCKET_LIMITS, maxHeaderBytes: listener.maxHeaderBytes },
      cors: policy,
      admission: new Admission(policy, authentication.authenticator),
      openRoutes: healthRoutes({
        readiness: () => this.#readiness(),
        hasCapacity: () => this.served.every(({ sessions }) => sessions.hasCapacity),
      }),
      routes: new Map(routes.flatMap((of) => [...of.routes])),
      browserPages: new Map(routes.flatMap((of) => [...of.browserPages])),
      publicRoutes: new Map([...authentication.publicRoutes, ...routes.flatMap((of) => [...of.publicRoutes])]),
      deps,
    });
  }

  /** Takes nothing new, and resolves when what is open has ended or the grace time is over. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.http.stopAccepting();
    await Promise.all(this.served.flatMap(({ sessions, calls }) => [sessions.drain(graceMs), calls.drain(graceMs)]));
  }

  /** Ends what is still open with this reason; the streams stay until `close`, for the last words of the servers. */
  endAll(reason: BridgeError): void {
    for (const { sessions, calls } of this.served) {
      sessions.close(reason);
      calls.close(reason);
    }
  }

  close(): void {
    this.live.close();
    this.http.close();
  }

  #serve(
    { config, sessionDialers, callDialers }: ListedServer,
    listener: HttpListenerConfig,
    parts: { readonly exchanges: Exchanges; readonly deps: Deps },
  ): ServedServer {
    const callers = describeCallers(listener, config);
    const sessions = createSessions(config, { ...parts, dialers: sessionDialers });
    const calls = createCalls({ ...config, callers }, { ...parts, dialers: callDialers });
    const routes = createRoutes(
      { ...config, callers, listener },
      { deps: parts.deps, sessions, calls, live: this.live },
    );
    return { sessions, calls, routes, readiness: () => sessionDialers.readiness() };
  }

  #readiness(): Readiness {
    if (this.#isDraining) return { state: 'refused', error: SHUTTING_DOWN };
    for (const { readiness } of this.served) {
      const known = readiness();
      if (known.state !== 'ready') return known;
    }
    return { state: 'ready' };
  }
}
