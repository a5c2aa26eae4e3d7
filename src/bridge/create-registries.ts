import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { CallRegistry } from '../relay/call-registry.ts';
import type { OpenCalls } from '../relay/open-calls.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { SessionRegistry } from '../relay/session-registry.ts';

/** Requests of clients that have no sessions. */
export function createCalls(
  { access, limits }: Config,
  parts: { readonly dialer: UpstreamDialer; readonly openCalls: OpenCalls; readonly deps: Deps },
): CallRegistry {
  // Where nobody has a name all have the same one, and none of them can be told to take too much.
  const isNamed = access.auth !== undefined || access.callerNames === 'several';
  const perCaller = isNamed ? { maxPerCaller: limits.maxInFlightPerSession } : {};
  const { requestTimeoutMs, maxCallMs } = limits;
  return new CallRegistry({ ...parts, ...perCaller, requestTimeoutMs, maxCallMs });
}

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
