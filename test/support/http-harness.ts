import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { HttpListener } from '../../src/bridge/http-listener.ts';
import type { ServedServer } from '../../src/bridge/served-server.ts';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import { QueueSizes } from '../../src/collections/queue-sizes.ts';
import type { MappedHeader } from '../../src/config/access.ts';
import type { BoundAddress, EndpointConfig, HttpListenerConfig } from '../../src/config/listener.ts';
import type { ForwardedHeader } from '../../src/config/remote.ts';
import type { ServerConfig } from '../../src/config/server.ts';
import type { Deps } from '../../src/deps.ts';
import type { LiveStreams } from '../../src/downstream/http/response-writer.ts';
import {
  type CertificateSource,
  type HttpRoute,
  type HttpServer,
  type HttpServerOptions,
  SOCKET_LIMITS,
} from '../../src/downstream/listener/http-server.ts';
import { REPLAY_LIMITS } from '../../src/downstream/streamable-session/replay-buffer.ts';
import type { StatelessEndpointOptions } from '../../src/downstream/streamable-stateless/endpoint.ts';
import { BridgeError } from '../../src/errors.ts';
import { ALLOW_ANYONE, type Authenticator } from '../../src/http/auth/callers.ts';
import { BodyCapacity } from '../../src/http/server/read-body.ts';
import type { CallRegistry } from '../../src/relay/call-registry.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import type { Observer } from '../../src/relay/observer.ts';
import type { CallDialer, SessionDialer } from '../../src/relay/ports.ts';
import type { IdleTimeouts, SessionRegistry } from '../../src/relay/sessions/session-registry.ts';
import { configOf } from '../bridge/config-of.ts';
import { createCalls } from './calls.ts';
import { asUpstream } from './dialers.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeServer } from './fake-server.ts';

export interface HttpHarnessOptions {
  /** 127.0.0.1 unless it says otherwise. */
  readonly host?: string;
  /** Any free one unless it says otherwise. */
  readonly port?: number;
  readonly maxSessions?: number;
  readonly maxMessageBytes?: number;
  /** Those that are text keep their name. */
  readonly forwardHeaders?: readonly (string | ForwardedHeader)[];
  readonly pollAfterMs?: number;
  readonly sessionTimeoutMs?: number;
  readonly idleTimeouts?: IdleTimeouts;
  readonly requestTimeoutMs?: number;
  readonly maxCallerSessions?: number;
  readonly maxSessionInFlight?: number;
  /** Calls of all clients together. */
  readonly maxInFlight?: number;
  readonly observer?: Observer;
  readonly maxStreams?: number;
  readonly maxReplayBytes?: number;
  /** Those of production unless they say otherwise. */
  readonly socketLimits?: HttpServerOptions['socketLimits'];
  readonly allowHosts?: readonly string[];
  readonly allowOrigins?: readonly string[];
  /** Lets anyone in unless it says otherwise. */
  readonly authenticator?: Authenticator;
  readonly publicRoutes?: ReadonlyMap<string, HttpRoute>;
  readonly mapHeaders?: readonly MappedHeader[];
  /** How clients reach it through a reverse proxy. */
  readonly baseUrl?: URL;
  readonly httpSse?: EndpointConfig['httpSse'];
  readonly sunset?: EndpointConfig['sunset'];
  /** The real one unless it says otherwise. */
  readonly wallClock?: () => number;
  readonly certificate?: CertificateSource;
  /** What stands in the place of the fake server; the test closes it. */
  readonly dialer?: (clock: FakeClock) => SessionDialer;
  /** The same for modern clients. */
  readonly modernDialer?: CallDialer | SessionDialer;
  readonly principalOf?: StatelessEndpointOptions['principalOf'];
}

/** The HTTP listener as the bridge composes it, real sockets and all, before a fake server and on fake time. */
export interface HttpHarness {
  readonly port: number;
  readonly clock: FakeClock;
  readonly server: FakeServer;
  readonly served: ServedServer;
  readonly sessions: SessionRegistry;
  /** Open calls of modern clients. */
  readonly modernCalls: CallRegistry;
  readonly live: LiveStreams;
  readonly http: HttpServer;
  /** Knows what is served where, for further listeners. */
  readonly servers: HttpListener['servers'];
  readonly config: HttpListenerConfig;
  readonly deps: Deps;
  readonly logLines: readonly string[];
}

/** Gone when the test ends. */
export async function startHttpHarness(t: ExecutionContext, options: HttpHarnessOptions = {}): Promise<HttpHarness> {
  const clock = new FakeClock();
  const server = new FakeServer();
  const logLines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => void logLines.push(line) });
  const { wallClock = Date.now } = options;
  const deps: Deps = { ...createSystemDeps(log), clock, wallClock };
  const authenticator = createAuthenticator(options);
  const config = listenerOf(options);
  const listener = new HttpListener({
    ownMarks: () => ['mark'],
    listener: config,
    dial: async () => ({
      sessionDialers: options.dialer === undefined ? server : forEveryCaller(asUpstream(options.dialer(clock))),
      callDialers: options.modernDialer === undefined ? server : forEveryCaller(asUpstream(options.modernDialer)),
      callerTokens: undefined,
      calls: createCalls(clock, {
        maxOpen: options.maxInFlight ?? DEFAULTS.limits.maxInFlight,
        observer: options.observer,
      }),
      ownMarks: () => ['mark'],
      bodies: new BodyCapacity(options.maxMessageBytes ?? DEFAULTS.servers[0].limits.maxMessageBytes).share(undefined),
      processes: { running: 0, failed: 0 },
      replicated: undefined,
      queues: new QueueSizes(),
      close: async () => undefined,
    }),
    looking: new Map(),
    replica: undefined,
    authentication: {
      forEndpoints: () => ({ authenticator, publicRoutes: options.publicRoutes ?? new Map() }),
      anywhere: () => authenticator,
      close: () => undefined,
    },
    certificate: options.certificate,
    onRefused: undefined,
    socketLimits: options.socketLimits ?? SOCKET_LIMITS,
    deps,
  });
  listener.servers.update([serverOf(options)]);
  const served = await listener.servers.unnamed?.start();
  if (served === undefined) throw new Error('one server is served');
  const { http, live, servers } = listener;
  const port = portOf(await http.listen());
  t.teardown(() => {
    void listener.servers.close(new BridgeError('ERR_SESSION_CLOSED', 'the test is over'));
    listener.close();
  });
  const { sessions, modernCalls } = served;
  return { port, clock, server, served, sessions, modernCalls, live, http, servers, config, deps, logLines };
}

/** Of the first address. */
export function portOf([bound]: readonly BoundAddress[]): number {
  if (bound?.kind !== 'tcp') throw new Error('it listens at no port');
  return bound.port;
}

const DEFAULTS = configOf('--', 'server');

function listenerOf(options: HttpHarnessOptions): HttpListenerConfig {
  const { host = '127.0.0.1', port = 0, httpSse = 'served', sunset, baseUrl } = options;
  if (DEFAULTS.listener.kind !== 'http') throw new Error('serve listens for HTTP');
  const { access, endpoints } = DEFAULTS.listener;
  return {
    ...DEFAULTS.listener,
    addresses: [{ kind: 'tcp', host, port }],
    tls: options.certificate && { certFile: 'of the test', keyFile: 'of the test' },
    endpoints: { ...endpoints, httpSse, sunset, baseUrl },
    access: { ...access, allowHosts: options.allowHosts ?? [], allowOrigins: options.allowOrigins ?? [] },
  };
}

function serverOf(options: HttpHarnessOptions): ServerConfig {
  const [server] = DEFAULTS.servers;
  const { maxSessions = 100, sessionTimeoutMs = 30 * 60_000 } = options;
  return {
    ...server,
    remote: { ...server.remote, forwardHeaders: (options.forwardHeaders ?? []).map(asForwarded) },
    mapHeaders: options.mapHeaders ?? [],
    sessions: {
      ...server.sessions,
      maxSessions,
      maxCallerSessions: options.maxCallerSessions ?? maxSessions,
      sessionTimeoutMs,
      idleTimeouts: options.idleTimeouts ?? { leftMs: sessionTimeoutMs, quietMs: sessionTimeoutMs },
      pollAfterMs: options.pollAfterMs ?? 0,
    },
    limits: {
      ...server.limits,
      maxMessageBytes: options.maxMessageBytes ?? server.limits.maxMessageBytes,
      maxReplayBytes: options.maxReplayBytes ?? REPLAY_LIMITS.maxBytes,
      maxSessionStreams: options.maxStreams ?? 100,
      maxSessionInFlight: options.maxSessionInFlight ?? server.limits.maxSessionInFlight,
      requestTimeoutMs: options.requestTimeoutMs ?? 0,
      maxCallTimeMs: 0,
    },
  };
}

function asForwarded(header: string | ForwardedHeader): ForwardedHeader {
  return typeof header === 'string' ? { name: header, sentAs: header } : header;
}

/** That of the test fixtures; it is never renewed. */
export function fixtureCertificate(): CertificateSource {
  const pem = (name: string): string => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
  return { pair: { cert: pem('server'), key: pem('server-key') }, renewed: () => undefined };
}

function createAuthenticator({ authenticator, principalOf }: HttpHarnessOptions): Authenticator {
  if (principalOf === undefined) return authenticator ?? ALLOW_ANYONE;
  return { authenticate: (request, decided) => decided({ kind: 'principal', principal: principalOf(request) }) };
}

/** What its log says at `warn` or above. */
export function seriousLines({ logLines }: HttpHarness): readonly string[] {
  return logLines.filter((line) => JSON.parse(line).level >= 40);
}
