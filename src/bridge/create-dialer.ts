import type { Members } from '../aggregate/members.ts';
import type { QueueSizes } from '../collections/queue-sizes.ts';
import type { BoundAddress } from '../config/listener.ts';
import { dependsOnCaller } from '../config/remote.ts';
import {
  AGGREGATE_NAME,
  type AggregateTarget,
  type CommandTarget,
  type GrpcTarget,
  type MqttTarget,
  type ReplayTarget,
  type ServerConfig,
  type StreamTarget,
  type UrlTarget,
} from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { assertNever } from '../errors.ts';
import type { CallerCredentials } from '../http/client/caller-credentials.ts';
import type { Credentials } from '../http/client/credentials.ts';
import type { ExchangedTokens } from '../http/login/exchange-token.ts';
import type { OpenSharedText } from '../http/login/login-storage.ts';
import { handshakeUrlOf, isWebSocketUrl } from '../http/websocket/url.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import type { Observing } from '../relay/client-presence.ts';
import { forEveryCaller } from '../relay/dialer-adapters.ts';
import type { DuplexTransport, ObservedServer, ServerObserver } from '../relay/observer.ts';
import type { CallerDialers, CallerEnvironment, RestorePolicy, UpstreamDialer } from '../relay/ports.ts';
import { createSharedLegacyServer } from '../relay/shared/legacy/legacy-era.ts';
import { SharedModernServer } from '../relay/shared/modern/modern-era.ts';
import type { OutcomeStorage } from '../relay/shared-state.ts';
import { type Connector, type CreateGuard, type CreateLifeCheck, watchConnections } from '../upstream/connection.ts';
import { type ConnectionDialerOptions, createConnectionDialer } from '../upstream/detect/connection-dialer.ts';
import type { EraDialers, JoinedDialers } from '../upstream/detect/joined-dialers.ts';
import { nameTarget } from '../upstream/name-target.ts';
import { askWhenHanging, pingWhenSilent } from '../upstream/resilience/life-check.ts';
import { PreparedConnections } from '../upstream/resilience/prepared-connections.ts';
import type { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { createStdioConnector } from '../upstream/stdio/connector.ts';
import { DialerByEnvironment } from '../upstream/stdio/dialer-by-environment.ts';
import type { Restarts } from '../upstream/stdio/replacing/restarts.ts';
import { CLIENT_INFO } from '../version.ts';
import type { CallerPolicy } from './caller-policy.ts';
import { toLegacy, toModern } from './join-eras.ts';

/** A server with everything needed to dial it. */
export interface ServerToDial extends ServerConfig {
  readonly callers: CallerPolicy;
  /** Limit of the processes of the whole bridge. */
  readonly children: ChildLimit;
  readonly shutdownGraceMs: number;
  /** Aborted when the bridge is about to be killed, so there is no time for processes to end by themselves. */
  readonly urgency: AbortSignal | undefined;
  /** Collects the sizes of the server's queues. */
  readonly queues: QueueSizes;
  /** Opens values that replicas share, such as a login; undefined: there are no other replicas. */
  readonly openShared: OpenSharedText | undefined;
  /** The tokens that callers have at the server; undefined: they have none of their own. */
  readonly callerTokens: CallerCredentials | undefined;
  /** The addresses at which this process itself listens. */
  readonly bound: () => readonly BoundAddress[];
  /** Storage for outcomes that outlive this process; undefined: none. */
  readonly outcomes: OutcomeStorage | undefined;
  /** Learns the server's protocol once it is detected. */
  readonly observing: Observing;
  /** Decides which messages pass; undefined: all do. */
  readonly createGuard?: CreateGuard | undefined;
  /** The side that waits while a user logs in: a client on the bridge's own pipes, which can tell the user, or callers. */
  readonly waits: 'client' | 'callers';
  /** The servers that the aggregate is made of; undefined where there is no aggregate. */
  readonly members: Members | undefined;
  /** Undefined if nobody looks at its processes. */
  readonly serverObserver?: ServerObserver | undefined;
}

/** Returns the name of a server for people: the one in the configuration file, else its program or address. */
export function nameServer({ listing, target }: Pick<ServerConfig, 'listing' | 'target'>): string {
  if (listing !== undefined) return listing.name;
  return target.kind === 'aggregate' ? AGGREGATE_NAME : nameTarget(target);
}

/** Creates the dialers of a server of any kind and any era, for clients of every era. */
export async function createDialers(server: ServerToDial, deps: Deps): Promise<CallerDialers> {
  const { target, child } = server;
  switch (target.kind) {
    case 'url': {
      const dial = isWebSocketUrl(target.url) ? dialWebSocket : dialUrl;
      return forEveryCaller(await dial(server, target, deps), restorePolicyOf(server));
    }
    case 'stream':
      return forEveryCaller(await dialStream(server, target, deps), restorePolicyOf(server));
    case 'mqtt': {
      const { requestTimeoutMs: handshakeTimeoutMs } = server.limits;
      // Devices come and go. Their clients would only learn that they have to begin anew.
      const policy: RestorePolicy = { afterLoss: 'goes-on', handshakeTimeoutMs };
      return forEveryCaller(await dialMqtt(server, target, deps), policy);
    }
    case 'grpc':
      return forEveryCaller(await dialGrpc(server, target, deps), restorePolicyOf(server));
    case 'replay':
      return forEveryCaller(await dialReplay(server, target, deps));
    case 'command': {
      const restarts = await createRestarts(server, target, deps);
      if (server.mapHeaders.length === 0) return forEveryCaller(dialCommand(server, { target, restarts }, deps));
      // Processes that get the variables of different callers share nothing.
      return new DialerByEnvironment({
        create: (environment: CallerEnvironment) =>
          dialCommand(
            { ...server, child: { ...child, env: { ...child.env, ...environment } } },
            { target, restarts },
            deps,
          ),
        clock: deps.clock,
      });
    }
    case 'aggregate':
      return dialAggregate(server.members, target, deps);
    default:
      return assertNever(target);
  }
}

/** Loaded on demand, since most bridges serve no aggregate. */
async function dialAggregate(
  members: Members | undefined,
  { shows }: AggregateTarget,
  deps: Deps,
): Promise<CallerDialers> {
  if (members === undefined) throw new Error('an aggregate has members');
  const { createAggregateDialer } = await import('../aggregate/dialer.ts');
  return createAggregateDialer({ members, shows, deps });
}

/** Loaded on demand, since files are watched only where a server is developed. Undefined: nothing is to be watched. */
async function createRestarts(
  { watch, limits, shutdownGraceMs: graceMs, observing }: ServerToDial,
  target: CommandTarget,
  deps: Deps,
): Promise<Restarts | undefined> {
  if (watch.length === 0) return undefined;
  const [{ Restarts }, { watchFiles }] = await Promise.all([
    import('../upstream/stdio/replacing/restarts.ts'),
    import('../watch/watch-files.ts'),
  ]);
  return new Restarts({
    watch: (changed) => watchFiles({ paths: watch, deps, changed }),
    name: observing.server ?? nameTarget(target),
    graceMs,
    handshakeTimeoutMs: limits.requestTimeoutMs,
    clientInfo: CLIENT_INFO,
    deps,
  });
}

interface CommandToDial {
  readonly target: CommandTarget;
  readonly restarts: Restarts | undefined;
}

/** Dials a server as a child process. Throws what `createStdioConnector` throws. */
function dialCommand(server: ServerToDial, { target, restarts }: CommandToDial, deps: Deps): UpstreamDialer {
  const connector = createStdioConnector({
    target,
    child: server.child,
    children: server.children,
    maxMessageBytes: server.limits.maxMessageBytes,
    shutdownGraceMs: server.shutdownGraceMs,
    failureLevel: 'warn',
    urgency: server.urgency,
    deps,
    trialClient: trialClientOf(server),
    observer: server.serverObserver,
    restarts,
  });
  const processes = guardAndRecord(connector, 'stdio', server);
  const { isolation, prewarm } = server.sessions;
  const lifeChecks = checkProcesses(processes.name, server, deps);
  if (prewarm === 0 || isolation === 'shared') {
    return findEras({ connections: processes, lifeChecks }, 'stdio', server, deps);
  }
  const prepared = new PreparedConnections(processes, prewarm, deps);
  return findEras({ connections: prepared, ownSessions: prepared, lifeChecks }, 'stdio', server, deps);
}

/**
 * Returns the name for trials of a server that failed. A client on a pipe is the only one to try the server, since nobody
 * asks whether that bridge is ready.
 */
function trialClientOf({ callers }: ServerToDial): Implementation | undefined {
  return callers.kind === 'pipe' ? undefined : CLIENT_INFO;
}

/** Checks the processes that no client could end by leaving: they serve several, or clients that have no sessions. */
function checkProcesses(
  name: string,
  { callers, sessions, limits }: ServerToDial,
  deps: Deps,
): Readonly<Record<Era, CreateLifeCheck>> | undefined {
  // The one client on a pipe has the server to itself, and a hanging process ends when it leaves.
  if (callers.kind === 'pipe' && sessions.isolation !== 'shared') return undefined;
  const { requestTimeoutMs, hangTimeoutMs } = limits;
  // If a call may take forever, a server that does not respond is no sign of a hang.
  if (requestTimeoutMs === 0 || hangTimeoutMs === 0) return undefined;
  const options = { name, requestTimeoutMs, hangTimeoutMs, clientInfo: CLIENT_INFO, deps };
  return {
    legacy: askWhenHanging({ ...options, era: 'legacy' }),
    modern: askWhenHanging({ ...options, era: 'modern' }),
  };
}

/** Dials a server on a byte stream. */
async function dialStream(server: ServerToDial, { address }: StreamTarget, deps: Deps): Promise<UpstreamDialer> {
  const { createByteStreamConnector } = await import('../upstream/byte-stream/connector.ts');
  const { remote, limits, bound } = server;
  const { maxMessageBytes } = limits;
  const { tls, timeouts } = remote;
  const streams = createByteStreamConnector({
    address,
    tls,
    connectTimeoutMs: timeouts.connectMs,
    maxMessageBytes,
    failureLevel: 'warn',
    bound,
    createLifeCheck: pingsOf(server, deps),
    trialClient: trialClientOf(server),
    deps,
  });
  return findEras({ connections: guardAndRecord(streams, 'byte-stream', server) }, 'byte-stream', server, deps);
}

/** Dials a recorded server, which runs in this process. Throws ERR_CONFIG_RECORDING. */
async function dialReplay(server: ServerToDial, target: ReplayTarget, deps: Deps): Promise<UpstreamDialer> {
  const { createReplayConnector } = await import('../upstream/replay/connector.ts');
  const replays = createReplayConnector({ target, speed: server.replaySpeed, deps });
  return findEras({ connections: guardAndRecord(replays, 'replay', server) }, 'replay', server, deps);
}

/** Dials a server over gRPC. */
async function dialGrpc(server: ServerToDial, target: GrpcTarget, deps: Deps): Promise<UpstreamDialer> {
  const { createGrpcConnector } = await import('../upstream/grpc/connector.ts');
  const { remote, limits, bound } = server;
  const { maxMessageBytes } = limits;
  const sessions = createGrpcConnector({
    target,
    remote,
    connectTimeoutMs: remote.timeouts.connectMs,
    maxMessageBytes,
    failureLevel: 'warn',
    bound,
    trialClient: trialClientOf(server),
    userAgent: `${CLIENT_INFO.name}/${CLIENT_INFO.version}`,
    deps,
  });
  return findEras({ connections: guardAndRecord(sessions, 'grpc', server) }, 'grpc', server, deps);
}

/**
 * Dials a server at a broker. Servers there hear nothing but `initialize` before a session, so the modern era is not looked for.
 * Nor are they pinged: some do not answer pings, and the broker tells when they leave.
 */
async function dialMqtt(server: ServerToDial, target: MqttTarget, deps: Deps): Promise<UpstreamDialer> {
  const { createMqttConnector } = await import('../upstream/mqtt/connector.ts');
  const { remote, limits, protocol } = server;
  const sessions = createMqttConnector({
    target,
    remote,
    connectTimeoutMs: remote.timeouts.connectMs,
    maxMessageBytes: limits.maxMessageBytes,
    clientInfo: CLIENT_INFO,
    failureLevel: 'warn',
    trialClient: trialClientOf(server),
    deps,
  });
  const connections = guardAndRecord(sessions, 'mqtt', server);
  const known = { ...server, protocol: protocol === 'auto' ? ('legacy' as const) : protocol };
  return findEras({ connections }, 'mqtt', known, deps);
}

/** Dials a server over WebSocket. */
async function dialWebSocket(server: ServerToDial, target: UrlTarget, deps: Deps): Promise<UpstreamDialer> {
  const { createRemoteWebSocketConnector } = await import('../upstream/websocket/connector.ts');
  const { remote, limits } = server;
  const credentials = await createCredentials(server, target, deps);
  const webSockets = createRemoteWebSocketConnector({
    target,
    remote,
    maxMessageBytes: limits.maxMessageBytes,
    clientInfo: CLIENT_INFO,
    credentials,
    createLifeCheck: pingsOf(server, deps),
    trialClient: trialClientOf(server),
    deps,
  });
  return findEras({ connections: guardAndRecord(webSockets, 'websocket', server) }, 'websocket', server, deps);
}

/** Guards and records each connection, which carries either era. */
function guardAndRecord(
  connector: Connector,
  transport: DuplexTransport,
  { createGuard, observing }: ServerToDial,
): Connector {
  const { taps } = observing;
  return watchConnections(connector, {
    createGuard,
    createTap: taps && (() => taps.connection({ transport, era: undefined })),
  });
}

/** Dials a server whose connections carry either era, for clients of both. */
function findEras(
  connections: Pick<ConnectionDialerOptions, 'connections' | 'ownSessions' | 'lifeChecks'>,
  transport: DuplexTransport,
  server: ServerToDial,
  deps: Deps,
): UpstreamDialer {
  const { isolation, prewarm } = server.sessions;
  const isShared = isolation === 'shared';
  return createConnectionDialer({
    ...connections,
    transport,
    connectionsFor: isForOneCaller(server) && !isShared ? 'one-caller' : 'anybody',
    protocol: server.protocol,
    clientInfo: CLIENT_INFO,
    learned: (spoken: ObservedServer): void => server.observing.speech.learn(spoken),
    joinEras: (dialers) => (isShared ? shareOne(dialers, server, deps) : keepApart(dialers, server, deps)),
    isAwaited: isShared && prewarm > 0,
    deps,
  });
}

/** Is the server shown something of callers, of which there are several? */
function isForOneCaller({ callers, remote }: ServerToDial): boolean {
  return callers.kind !== 'pipe' && dependsOnCaller(remote);
}

/** Gives each session a connection. A modern server keeps no sessions, so all its requests can share one. */
function keepApart({ legacy, modern, modernForOne }: EraDialers, server: ServerToDial, deps: Deps): JoinedDialers {
  // The one client on a pipe has the server to itself, so its messages pass unchanged. Forwarded headers are sent with
  // the handshake, so such a connection serves one caller.
  const isShared = server.callers.kind !== 'pipe' && !isForOneCaller(server);
  return {
    modern: isShared ? new SharedModernServer({ dialer: modern, deps, prewarm: false }) : modern,
    legacyToModern: toModern(modernForOne, deps),
    modernToLegacy: toLegacy(legacy, server, deps),
    sessions: { kind: 'own' },
  };
}

/** Gives all clients one connection. */
function shareOne(dialers: EraDialers, server: ServerToDial, deps: Deps): JoinedDialers {
  const handshakeTimeoutMs = server.limits.requestTimeoutMs;
  const options = { deps, prewarm: false };
  const legacy = createSharedLegacyServer({
    ...options,
    dialer: dialers.legacy,
    handshakeTimeoutMs,
    clientInfo: CLIENT_INFO,
  });
  const modern = new SharedModernServer({ ...options, dialer: dialers.modern });
  return {
    modern,
    legacyToModern: toModern(modern, deps),
    modernToLegacy: toLegacy(legacy, server, deps),
    sessions: {
      kind: 'shared',
      dialer: legacy,
      startInitialized: (result) => legacy.startInitialized(result),
      warm: (era) => (era === 'legacy' ? legacy : modern).keepWarm(),
    },
  };
}

/** Dials a server at a URL, for clients of every era. */
async function dialUrl(server: ServerToDial, target: UrlTarget, deps: Deps): Promise<UpstreamDialer> {
  // Loaded on demand: its libraries would double the heap, and with it the cost of each garbage collection.
  const { createUrlDialer } = await import('../upstream/detect/url-dialer.ts');
  const { protocol, remote, limits } = server;
  const credentials = await createCredentials(server, target, deps);
  return createUrlDialer({
    target,
    protocol,
    remote,
    maxMessageBytes: limits.maxMessageBytes,
    tracing: server.observing.tracer === undefined ? 'off' : 'in-headers',
    clientInfo: CLIENT_INFO,
    credentials,
    learned: (spoken) => server.observing.speech.learn(spoken),
    createLifeCheck: pingsOf(server, deps),
    createGuard: server.createGuard,
    taps: server.observing.taps,
    trialClient: trialClientOf(server),
    deps,
    joinEras: ({ legacy, modern }) => ({
      modern,
      legacyToModern: toModern(modern, deps),
      modernToLegacy: toLegacy(legacy, server, deps),
      sessions: { kind: 'own' },
    }),
  });
}

/** Pings the connections of a remote server; undefined: no pings are sent. */
function pingsOf(server: ServerToDial, deps: Deps): CreateLifeCheck | undefined {
  const { remote, limits } = server;
  const { keepAliveMs: idleMs } = remote;
  if (idleMs === 0) return undefined;
  return pingWhenSilent({
    name: nameServer({ ...server, listing: undefined }),
    idleMs,
    requestTimeoutMs: limits.requestTimeoutMs,
    deps,
  });
}

/**
 * Returns the rules for sessions at a remote server. A client on a pipe cannot be made to open a new session, so its
 * session goes on after a loss.
 */
function restorePolicyOf({ callers, remote, limits }: ServerToDial): RestorePolicy {
  const { requestTimeoutMs: handshakeTimeoutMs } = limits;
  if (callers.kind === 'pipe') return { afterLoss: 'goes-on', handshakeTimeoutMs };
  const begins = dependsOnCaller(remote) ? 'with-a-request' : 'at-once';
  return { afterLoss: 'ends', begins, handshakeTimeoutMs };
}

/** Loaded where they may be needed: a server whose token is given asks for no login. */
async function createCredentials(
  { remote, observing, openShared, waits, callerTokens }: ServerToDial,
  { url }: UrlTarget,
  deps: Deps,
): Promise<Credentials | CallerCredentials | undefined> {
  const { login: config } = remote;
  if (config === undefined) return callerTokens;
  const server = handshakeUrlOf(url);
  const login = await import('../http/login/create-login.ts');
  const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
  const { observer, server: name } = observing;
  const registered = (): void => observer?.used('dynamic-client-registration', { server: name, client: undefined });
  return login.createLogin({ server, config, remote, userAgent, openShared, registered, waits, deps });
}

/** Undefined: callers have no tokens of their own at this server. */
export async function createCallerTokens(
  { target, remote }: Pick<ServerConfig, 'target' | 'remote'>,
  deps: Deps,
): Promise<ExchangedTokens | undefined> {
  const { exchange: config, tls, proxyEnv } = remote;
  if (target.kind !== 'url' || config === undefined) return undefined;
  const [{ ExchangedTokens }, { HttpClient }] = await Promise.all([
    import('../http/login/exchange-token.ts'),
    import('../http/client/client.ts'),
  ]);
  const http = new HttpClient({
    ...{ headers: new Map(), bearerTokenFile: undefined, credentials: undefined, tls, proxyEnv, socketPath: undefined },
    ...{ userAgent: `${CLIENT_INFO.name}/${CLIENT_INFO.version}`, clock: deps.clock },
  });
  return new ExchangedTokens({ server: handshakeUrlOf(target.url), config, http, deps });
}
