import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { OpenCalls } from '../relay/open-calls.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { SessionRegistry } from '../relay/session-registry.ts';

/** Sessions of legacy clients, and what a stdio client has in their place. */
export function createSessions(
  { sessions, limits }: Config,
  parts: { readonly dialer: UpstreamDialer; readonly openCalls: OpenCalls; readonly deps: Deps },
): SessionRegistry {
  return new SessionRegistry({
    ...parts,
    maxSessions: sessions.maxSessions,
    maxPerCaller: sessions.maxSessionsPerCaller,
    maxCallsPerSession: limits.maxInFlightPerSession,
    sessionTimeoutMs: sessions.sessionTimeoutMs,
    idleTimeouts: sessions.idleTimeouts,
    requestTimeoutMs: limits.requestTimeoutMs,
    maxCallMs: limits.maxCallMs,
  });
}
