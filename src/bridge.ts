import { readFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import type { CommandTarget, Config, UrlTarget } from './config.ts';
import type { Deps } from './deps.ts';
import { healthRoutes } from './downstream/health.ts';
import { type HttpRoute, HttpServer } from './downstream/http-server.ts';
import { HttpSseEndpoint } from './downstream/http-sse.ts';
import { LiveStreams } from './downstream/live-streams.ts';
import { metadataRoutes } from './downstream/resource-metadata.ts';
import { StdioFace } from './downstream/stdio.ts';
import { StreamableEndpoint, type StreamableEndpointOptions } from './downstream/streamable-session/endpoint.ts';
import { BridgeError } from './errors.ts';
import { AccessPolicy } from './http/access-policy.ts';
import { Callers } from './http/auth/callers.ts';
import { createAuthenticator } from './http/auth/create-authenticator.ts';
import { ProtectedResource } from './http/auth/protected-resource.ts';
import type { HttpClient } from './http/client.ts';
import { LinkPool } from './relay/link-pool.ts';
import { PingingDialer } from './relay/pinging-dialer.ts';
import type { Readiness, UpstreamDialer } from './relay/ports.ts';
import { RevivingDialer } from './relay/reviving-dialer.ts';
import { SessionRegistry } from './relay/session-registry.ts';
import { SharedServer } from './relay/shared/shared-server.ts';
import { createStdioDialer } from './upstream/stdio.ts';
import { VERSION } from './version.ts';

export interface RunningBridge {
  /** Where it can be reached, for people; empty for a stdio face. */
  readonly urls: readonly { readonly label: string; readonly url: string }[];
  /** Takes nothing new, lets open calls finish within the grace time, ends streams, then the server's processes. */
  shutdown(): Promise<void>;
  /** Last resort, synchronous: no child stays behind. */
  killNow(): void;
  /** Resolves when the bridge has ended by itself: with what went wrong, or undefined when its work is done. */
  readonly ended: Promise<BridgeError | undefined>;
}

/** The client's end of a stdio face. */
export interface ClientPipes {
  readonly input: Readable;
  readonly output: Writable;
}

/** The composition root: the only place that knows every folder. Resolves once a client can connect. */
export function runBridge(config: Config, deps: Deps, openPipes: () => ClientPipes): Promise<RunningBridge> {
  switch (config.verb) {
    case 'serve':
      return serveHttp(config, deps);
    case 'connect':
      return connectStdio(config, deps, openPipes());
  }
}

async function serveHttp(config: Config, deps: Deps): Promise<RunningBridge> {
  const tls = await readTls(config);
  const dialer = await createDialer(config, deps);
  const sessions = createSessions(config, dialer, deps);
  const live = new LiveStreams(deps.clock);
  let isDraining = false;
  const door = await createDoor(config, deps);
  const readiness = (): Readiness => (isDraining ? { ready: false, error: SHUTTING_DOWN } : dialer.readiness());
  const server = new HttpServer({
    host: config.listen.host,
    port: config.listen.port,
    tls,
    access: new AccessPolicy({ host: config.listen.host, ...config.access }),
    callers: door.callers,
    openRoutes: healthRoutes(readiness),
    publicRoutes: door.publicRoutes,
    routes: createRoutes(config, { deps, sessions, live, principalOf: door.callers.principalOf }),
    deps,
  });
  let port: number;
  try {
    port = await server.listen();
  } catch (error) {
    await dialer.close();
    throw error;
  }
  return {
    urls: createUrls(config, port),
    async shutdown() {
      isDraining = true;
      server.stopAccepting();
      await sessions.drain(config.limits.shutdownGraceMs);
      sessions.close(SHUTTING_DOWN);
      await dialer.close();
      live.close();
      server.close();
      door.close();
    },
    killNow: () => dialer.killNow(),
    ended: server.failed,
  };
}

/** How callers show who they are, and what they are told about it. */
async function createDoor(config: Config, deps: Deps) {
  const { listen, endpoints, access } = config;
  const oauth = access.auth?.oauth;
  const scheme = listen.tls === undefined ? 'http' : 'https';
  const resource = oauth === undefined ? undefined : new ProtectedResource({ ...oauth, endpoints, scheme });
  let client: HttpClient | undefined;
  const createClient = async (): Promise<HttpClient> => {
    const { HttpClient } = await import('./http/client.ts');
    const { proxyEnv } = config.remote;
    const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
    client ??= new HttpClient({ ...NO_CREDENTIALS, proxyEnv, userAgent, clock: deps.clock });
    return client;
  };
  const authenticator = await createAuthenticator({ auth: access.auth, resource, createClient, deps });
  const publicRoutes = resource === undefined ? new Map<string, HttpRoute>() : metadataRoutes(resource);
  return { callers: new Callers(authenticator), publicRoutes, close: () => client?.close() };
}

/** What the server is shown is nothing to an issuer. */
const NO_CREDENTIALS = {
  headers: new Map<string, string>(),
  bearerTokenFile: undefined,
  tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
};

async function connectStdio(config: Config, deps: Deps, pipes: ClientPipes): Promise<RunningBridge> {
  const dialer = await createDialer(config, deps);
  const sessions = createSessions(config, dialer, deps);
  const face = new StdioFace({ ...pipes, sessions, deps, maxMessageBytes: config.limits.maxMessageBytes });
  const shutdown = async (): Promise<void> => {
    // What was asked before the end of input is still answered.
    await sessions.drain(config.limits.shutdownGraceMs);
    // A client that has stopped reading does not hold up the end.
    await Promise.race([face.flush(), pause(config.limits.shutdownGraceMs, deps)]);
    sessions.close(SHUTTING_DOWN);
    await dialer.close();
  };
  const end = async (): Promise<BridgeError | undefined> => {
    const ended = await face.ended;
    await shutdown();
    return ended.kind === 'server' ? ended.reason : undefined;
  };
  return { urls: [], shutdown, killNow: () => dialer.killNow(), ended: end() };
}

function pause(ms: number, { clock }: Deps): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

const SHUTTING_DOWN = new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down.');

function createSessions(config: Config, dialer: UpstreamDialer, deps: Deps): SessionRegistry {
  return new SessionRegistry({
    dialer,
    deps,
    maxSessions: config.sessions.maxSessions,
    sessionTimeoutMs: config.sessions.sessionTimeoutMs,
    requestTimeoutMs: config.limits.requestTimeoutMs,
  });
}

const CLIENT_INFO = { name: 'mcp-portage', version: VERSION };

async function createDialer(config: Config, deps: Deps): Promise<UpstreamDialer> {
  const { target } = config;
  return target.kind === 'url' ? createUrlDialer(config, target, deps) : createCommandDialer(config, target, deps);
}

function createCommandDialer(config: Config, target: CommandTarget, deps: Deps): UpstreamDialer {
  const { isolation, prewarm } = config.sessions;
  const { maxMessageBytes, shutdownGraceMs, requestTimeoutMs } = config.limits;
  const dialer = createStdioDialer({ target, child: config.child, maxMessageBytes, shutdownGraceMs, deps });
  if (isolation === 'shared') {
    const shared = { prewarm: prewarm > 0, handshakeTimeoutMs: requestTimeoutMs, clientInfo: CLIENT_INFO };
    return new SharedServer({ dialer, deps, ...shared });
  }
  return prewarm > 0 ? new LinkPool(dialer, prewarm, deps) : dialer;
}

async function createUrlDialer(config: Config, target: UrlTarget, deps: Deps): Promise<UpstreamDialer> {
  // Loaded where it is used: its libraries would double the heap, and with it the cost of each collection.
  const { createRemoteDialer } = await import('./upstream/remote.ts');
  const { remote, limits, verb } = config;
  const { maxMessageBytes } = limits;
  let dialer = createRemoteDialer({ target, remote, maxMessageBytes, clientInfo: CLIENT_INFO, deps });
  if (remote.keepAliveMs > 0) dialer = new PingingDialer(dialer, remote.keepAliveMs, deps.clock);
  // A client over HTTP is told to open a new session; one on stdio cannot be.
  return verb === 'connect' ? new RevivingDialer(dialer, deps) : dialer;
}

type EndpointParts = Pick<StreamableEndpointOptions, 'deps' | 'sessions' | 'live' | 'principalOf'>;

function createRoutes(config: Config, parts: EndpointParts): ReadonlyMap<string, HttpRoute> {
  const { path, ssePath, messagePath, baseUrl } = config.endpoints;
  const { maxMessageBytes } = config.limits;
  const shared = { ...parts, maxMessageBytes, forwardHeaders: config.remote.forwardHeaders };
  const prefix = baseUrl === undefined ? '' : baseUrl.pathname.replace(/\/$/, '');
  const httpSse = new HttpSseEndpoint({ ...shared, announcedMessagePath: `${prefix}${messagePath}` });
  const streamable = new StreamableEndpoint({
    ...shared,
    pollAfterMs: config.sessions.pollAfterMs,
    openWithoutSession: httpSse.openStream,
  });
  return new Map([
    [path, streamable.route],
    [ssePath, httpSse.openStream],
    [messagePath, httpSse.takeMessage],
  ]);
}

function createUrls(config: Config, port: number): RunningBridge['urls'] {
  const { baseUrl, path, ssePath } = config.endpoints;
  const { host, tls } = config.listen;
  const scheme = tls === undefined ? 'http' : 'https';
  const own = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const base = baseUrl === undefined ? own : baseUrl.href.replace(/\/$/, '');
  return [
    { label: 'Streamable HTTP', url: `${base}${path}` },
    { label: 'HTTP+SSE', url: `${base}${ssePath}` },
    { label: 'Health', url: `${own}/healthz` },
    { label: 'Readiness', url: `${own}/readyz` },
  ];
}

async function readTls(config: Config): Promise<{ cert: Buffer; key: Buffer } | undefined> {
  const { tls } = config.listen;
  if (tls === undefined) return undefined;
  return { cert: await readPem(tls.certFile, '--tls-cert'), key: await readPem(tls.keyFile, '--tls-key') };
}

async function readPem(file: string, option: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new BridgeError('ERR_CONFIG_OPTION', `Cannot read the file given with ${option}: ${file}.`, { cause });
  }
}
