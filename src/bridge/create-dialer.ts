import type { CommandTarget, Config, LoginConfig, RemoteConfig, UrlTarget } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { Credentials } from '../http/client/credentials.ts';
import { CARRIED_CAPABILITIES } from '../mcp/vocabulary/client-capabilities.ts';
import { DialerByEnvironment } from '../relay/dialer-by-environment.ts';
import { LinkPool } from '../relay/link-pool.ts';
import { createPingingDialer } from '../relay/pinging-dialer.ts';
import type { CallerEnvironment, UpstreamDialer } from '../relay/ports.ts';
import { createRevivingDialer } from '../relay/reviving-dialer.ts';
import { SharedServer } from '../relay/shared/shared-server.ts';
import { SharedModernServer } from '../relay/shared-modern/shared-modern-server.ts';
import { createWatchingDialer } from '../relay/watching-dialer.ts';
import type { EraDialers, JoinedDialers } from '../upstream/detect/joined-dialers.ts';
import { createDetectedCommandDialer } from '../upstream/detected-command.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { createStdioDialer } from '../upstream/stdio/dialer.ts';
import { CLIENT_INFO } from '../version.ts';
import { toLegacy, toModern } from './join-eras.ts';

/**
 * The way to the server, whatever it is and whatever it speaks.
 * @param urgency aborted when the bridge is about to be killed, and processes have to end before
 */
export async function createDialer(config: Config, deps: Deps, urgency?: AbortSignal): Promise<UpstreamDialer> {
  const { target } = config;
  if (target.kind === 'url') return createUrlDialer(config, target, deps);
  const server = { target, children: new ChildLimit(config.sessions.maxChildren), urgency };
  if (config.access.mapHeaders.length === 0) return createCommandDialer(config, server, deps);
  // Nothing is shared between processes that are told of different callers.
  return new DialerByEnvironment({
    create: (environment) => createCommandDialer(withEnvironment(config, environment), server, deps),
    clock: deps.clock,
  });
}

function withEnvironment(config: Config, environment: CallerEnvironment): Config {
  return { ...config, child: { ...config.child, env: { ...config.child.env, ...environment } } };
}

export interface ServerToStart {
  readonly target: CommandTarget;
  /** Counts the processes of the whole bridge. */
  readonly children: ChildLimit;
  /** Aborted when there is no time to let them end by themselves. */
  readonly urgency: AbortSignal | undefined;
}

/** A server to start, for clients of every era. Throws what `createStdioDialer` throws. */
export function createCommandDialer(config: Config, server: ServerToStart, deps: Deps): UpstreamDialer {
  const { isolation, prewarm } = config.sessions;
  const { maxMessageBytes, shutdownGraceMs } = config.limits;
  const trialClient = config.verb === 'serve' ? CLIENT_INFO : undefined;
  const processes = createStdioDialer({
    ...server,
    child: config.child,
    maxMessageBytes,
    shutdownGraceMs,
    deps,
    trialClient,
  });
  const detected = { protocol: config.protocol, clientInfo: CLIENT_INFO, deps };
  if (isolation === 'shared') {
    const joinEras = (dialers: EraDialers): JoinedDialers => shareOne(dialers, config, deps);
    return createDetectedCommandDialer({ ...detected, processes, joinEras, isAwaited: prewarm > 0 });
  }
  return createDetectedCommandDialer({
    ...detected,
    processes: prewarm > 0 ? new LinkPool(processes, prewarm, deps) : processes,
    joinEras: (dialers) => keepApart(dialers, config, deps),
  });
}

/** A process for each session. A modern server keeps none, so its requests can go to one for all. */
function keepApart(dialers: EraDialers, config: Config, deps: Deps): JoinedDialers {
  const legacyToModern = toModern(dialers.modern, deps);
  if (config.verb === 'connect') {
    // One client on a pipe has the server to itself: its messages pass as they are, and what hangs ends when it leaves.
    return { modern: dialers.modern, legacyToModern, modernToLegacy: toLegacy(dialers.legacy, config, deps) };
  }
  const { legacy, modern } = watchProcesses(dialers, config, deps);
  return {
    modern: new SharedModernServer({ dialer: modern, deps, prewarm: false }),
    legacyToModern,
    modernToLegacy: toLegacy(legacy, config, deps),
  };
}

/** One process for everybody. */
function shareOne(dialers: EraDialers, config: Config, deps: Deps): JoinedDialers {
  const handshakeTimeoutMs = config.limits.requestTimeoutMs;
  const options = { deps, prewarm: false };
  const watched = watchProcesses(dialers, config, deps);
  const legacy = new SharedServer({ ...options, dialer: watched.legacy, handshakeTimeoutMs, clientInfo: CLIENT_INFO });
  const modern = new SharedModernServer({ ...options, dialer: watched.modern });
  return {
    legacy: { dialer: legacy, capabilities: CARRIED_CAPABILITIES },
    modern,
    legacyToModern: toModern(modern, deps),
    modernToLegacy: toLegacy(legacy, config, deps),
    warm: (era) => (era === 'legacy' ? legacy : modern).keepWarm(),
  };
}

/** A server at a URL, for clients of every era. */
export async function createUrlDialer(config: Config, target: UrlTarget, deps: Deps): Promise<UpstreamDialer> {
  // Loaded where it is used: its libraries would double the heap, and with it the cost of each collection.
  const { createDetectedRemoteDialer } = await import('../upstream/detected-remote.ts');
  const { protocol, remote, limits, verb } = config;
  const credentials = remote.login === undefined ? undefined : await createLogin(remote.login, remote, target, deps);
  let dialer = createDetectedRemoteDialer({
    target,
    protocol,
    remote,
    maxMessageBytes: limits.maxMessageBytes,
    clientInfo: CLIENT_INFO,
    credentials,
    deps,
    joinEras: ({ legacy, modern }) => ({
      modern,
      legacyToModern: toModern(modern, deps),
      modernToLegacy: toLegacy(legacy, config, deps),
    }),
  });
  if (remote.keepAliveMs > 0) dialer = createPingingDialer(dialer, remote.keepAliveMs, deps);
  // A client over HTTP is told to open a new session; one on stdio cannot be.
  if (verb !== 'connect') return dialer;
  return createRevivingDialer(dialer, { deps, handshakeTimeoutMs: limits.requestTimeoutMs });
}

/** Loaded where it may be needed: a server whose token is given asks for no login. */
async function createLogin(
  config: LoginConfig,
  remote: RemoteConfig,
  { url: server }: UrlTarget,
  deps: Deps,
): Promise<Credentials> {
  const login = await import('../http/login/create-login.ts');
  const userAgent = `${CLIENT_INFO.name}/${CLIENT_INFO.version}`;
  return login.createLogin({ server, config, remote, userAgent, deps });
}

/** For processes that no client could end by leaving: they serve several, or clients that have no sessions. */
export function watchProcesses({ legacy, modern }: EraDialers, { limits }: Config, deps: Deps): EraDialers {
  const { requestTimeoutMs, hangTimeoutMs } = limits;
  // Where a call may be silent for ever, so may a server.
  if (requestTimeoutMs === 0 || hangTimeoutMs === 0) return { legacy, modern };
  const options = { requestTimeoutMs, hangTimeoutMs, clientInfo: CLIENT_INFO, deps };
  return {
    legacy: createWatchingDialer(legacy, { ...options, era: 'legacy' }),
    modern: createWatchingDialer(modern, { ...options, era: 'modern' }),
  };
}
