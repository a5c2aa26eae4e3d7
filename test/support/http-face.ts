import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { createRoutes } from '../../src/bridge/create-routes.ts';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import type { EndpointConfig, MappedHeader } from '../../src/config.ts';
import type { Deps } from '../../src/deps.ts';
import { healthRoutes } from '../../src/downstream/listener/health.ts';
import {
  type CertificateSource,
  HttpServer,
  type HttpServerOptions,
  SOCKET_LIMITS,
} from '../../src/downstream/listener/http-server.ts';
import { LiveStreams } from '../../src/downstream/stream/live-streams.ts';
import type { StatelessEndpointOptions } from '../../src/downstream/streamable-stateless/endpoint.ts';
import { BridgeError } from '../../src/errors.ts';
import { type Authenticator, LETS_ANYONE_IN } from '../../src/http/auth/authenticator.ts';
import { Callers } from '../../src/http/auth/callers.ts';
import { AccessPolicy } from '../../src/http/server/access-policy.ts';
import { CallRegistry } from '../../src/relay/call-registry.ts';
import { OpenCalls } from '../../src/relay/open-calls.ts';
import type { UpstreamDialer } from '../../src/relay/ports.ts';
import { REPLAY_LIMITS } from '../../src/relay/replay-buffer.ts';
import { type IdleTimeouts, SessionRegistry } from '../../src/relay/session-registry.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeServer } from './fake-server.ts';

export interface HttpFaceOptions {
  /** 127.0.0.1 unless it says otherwise. */
  readonly host?: string;
  /** Any free one unless it says otherwise. */
  readonly port?: number;
  readonly maxSessions?: number;
  readonly maxMessageBytes?: number;
  readonly forwardHeaders?: readonly string[];
  readonly pollAfterMs?: number;
  readonly sessionTimeoutMs?: number;
  readonly idleTimeouts?: IdleTimeouts;
  readonly requestTimeoutMs?: number;
  readonly maxPerCaller?: number;
  readonly maxCallsPerSession?: number;
  readonly openCalls?: OpenCalls;
  readonly maxStreams?: number;
  readonly maxReplayBytes?: number;
  /** Those of production unless they say otherwise. */
  readonly socketLimits?: HttpServerOptions['socketLimits'];
  readonly allowHosts?: readonly string[];
  readonly allowOrigins?: readonly string[];
  /** Lets anyone in unless it says otherwise. */
  readonly authenticator?: Authenticator;
  readonly publicRoutes?: HttpServerOptions['publicRoutes'];
  readonly mapHeaders?: readonly MappedHeader[];
  /** How clients reach it through a reverse proxy. */
  readonly baseUrl?: URL;
  readonly httpSse?: EndpointConfig['httpSse'];
  readonly certificate?: CertificateSource;
  /** What stands in the place of the fake server; the test closes it. */
  readonly dialer?: (clock: FakeClock) => UpstreamDialer;
  /** The same for modern clients. */
  readonly modernDialer?: UpstreamDialer;
  readonly principalOf?: StatelessEndpointOptions['principalOf'];
}

/** The HTTP face as the bridge composes it, real sockets and all, before a fake server and on fake time. */
export interface HttpFace {
  readonly port: number;
  readonly clock: FakeClock;
  readonly server: FakeServer;
  readonly sessions: SessionRegistry;
  /** Open calls of modern clients. */
  readonly calls: CallRegistry;
  readonly live: LiveStreams;
  readonly http: HttpServer;
  readonly logLines: readonly string[];
}

/** Gone when the test ends. */
export async function startHttpFace(t: ExecutionContext, options: HttpFaceOptions = {}): Promise<HttpFace> {
  const clock = new FakeClock();
  const server = new FakeServer();
  const logLines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => void logLines.push(line) });
  const deps: Deps = { ...createSystemDeps(log), clock };
  const openCalls = options.openCalls ?? new OpenCalls();
  const sessions = new SessionRegistry({
    ...options,
    openCalls,
    dialer: options.dialer?.(clock) ?? server,
    deps,
    maxSessions: options.maxSessions ?? 100,
    sessionTimeoutMs: options.sessionTimeoutMs ?? 30 * 60_000,
    requestTimeoutMs: options.requestTimeoutMs ?? 0,
  });
  const calls = new CallRegistry({
    openCalls,
    dialer: options.modernDialer ?? server,
    deps,
    requestTimeoutMs: options.requestTimeoutMs ?? 0,
  });
  const live = new LiveStreams(clock);
  const http = createHttpServer(options, { deps, server, sessions, calls, live });
  const port = await http.listen();
  t.teardown(() => {
    const reason = new BridgeError('ERR_SESSION_CLOSED', 'the test is over');
    sessions.close(reason);
    calls.close(reason);
    live.close();
    http.close();
  });
  return { port, clock, server, sessions, calls, live, http, logLines };
}

/** That of the test fixtures; it is never renewed. */
export function fixtureCertificate(): CertificateSource {
  const pem = (name: string): string => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
  return { pair: { cert: pem('server'), key: pem('server-key') }, renewed: () => undefined };
}

interface Parts {
  readonly deps: Deps;
  readonly server: FakeServer;
  readonly sessions: SessionRegistry;
  readonly calls: CallRegistry;
  readonly live: LiveStreams;
}

function createAuthenticator({ authenticator, principalOf }: HttpFaceOptions): Authenticator {
  if (principalOf === undefined) return authenticator ?? LETS_ANYONE_IN;
  return { authenticate: (request, decided) => decided({ kind: 'principal', principal: principalOf(request) }) };
}

function createHttpServer(options: HttpFaceOptions, { deps, server, sessions, calls, live }: Parts): HttpServer {
  const callers = new Callers(createAuthenticator(options), options.mapHeaders);
  const { principalOf, environmentOf } = callers;
  const { httpSse = 'served', baseUrl, certificate: tls } = options;
  const routes = createRoutes(
    {
      endpoints: { path: '/mcp', httpSse, ssePath: '/sse', messagePath: '/messages', baseUrl },
      listen: { tls },
      access: { callerNames: 'one' },
      remote: { forwardHeaders: options.forwardHeaders ?? [] },
      sessions: { pollAfterMs: options.pollAfterMs ?? 0 },
      limits: {
        maxMessageBytes: options.maxMessageBytes ?? 16 * 1024 * 1024,
        maxJsonDepth: 1000,
        maxReplayBytes: options.maxReplayBytes ?? REPLAY_LIMITS.maxBytes,
        maxStreamsPerSession: options.maxStreams ?? 100,
        requestTimeoutMs: options.requestTimeoutMs ?? 0,
      },
    },
    { deps, sessions, calls, live, principalOf, environmentOf },
  );
  return new HttpServer({
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    certificate: options.certificate,
    socketLimits: options.socketLimits ?? SOCKET_LIMITS,
    access: new AccessPolicy({
      host: options.host ?? '127.0.0.1',
      allowHosts: options.allowHosts ?? [],
      allowOrigins: options.allowOrigins ?? [],
    }),
    callers,
    openRoutes: healthRoutes({ readiness: () => server.readiness(), hasCapacity: () => sessions.hasCapacity }),
    ...routes,
    publicRoutes: new Map([...(options.publicRoutes ?? []), ...routes.publicRoutes]),
    deps,
  });
}

/** What its log says at `warn` or above. */
export function seriousLines({ logLines }: HttpFace): readonly string[] {
  return logLines.filter((line) => JSON.parse(line).level >= 40);
}
