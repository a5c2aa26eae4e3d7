import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { SessionRegistry } from '../relay/session-registry.ts';

/** Sessions of legacy clients, and what a stdio client has in their place. */
export function createSessions(config: Config, dialer: UpstreamDialer, deps: Deps): SessionRegistry {
  return new SessionRegistry({
    dialer,
    deps,
    maxSessions: config.sessions.maxSessions,
    sessionTimeoutMs: config.sessions.sessionTimeoutMs,
    requestTimeoutMs: config.limits.requestTimeoutMs,
  });
}
