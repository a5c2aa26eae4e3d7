import type { CommandTarget, Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { CARRIED_CAPABILITIES } from '../mcp/client-capabilities.ts';
import { LinkPool } from '../relay/link-pool.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { SharedServer } from '../relay/shared/shared-server.ts';
import { SharedModernServer } from '../relay/shared-modern/shared-modern-server.ts';
import type { ChildLimit } from '../upstream/child-limit.ts';
import type { EraDialers, JoinedDialers } from '../upstream/detect/joined-dialers.ts';
import { createDetectedCommandDialer } from '../upstream/detected-command.ts';
import { createStdioDialer } from '../upstream/stdio.ts';
import { CLIENT_INFO } from './client-info.ts';
import { toLegacy, toModern } from './join-eras.ts';
import { watchProcesses } from './watch-processes.ts';

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
