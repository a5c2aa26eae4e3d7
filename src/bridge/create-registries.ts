import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { CallRegistry } from '../relay/call-registry.ts';
import type { WiderLimits } from '../relay/cluster-ports.ts';
import type { Exchanges } from '../relay/exchanges.ts';
import type { CallerDialers } from '../relay/ports.ts';
import { SessionRegistry } from '../relay/sessions/session-registry.ts';
import type { SessionStorage } from '../relay/sessions/session-storage.ts';
import { type CallerPolicy, haveNames } from './caller-policy.ts';

export interface RegistryParts {
  readonly dialers: CallerDialers;
  /** Those of the whole bridge. */
  readonly exchanges: Exchanges;
  readonly deps: Deps;
}

/** Requests of clients that have no sessions. */
export function createCalls(
  { limits, callers }: Pick<ServerConfig, 'limits'> & { readonly callers: CallerPolicy },
  parts: RegistryParts,
  widerLimits?: Pick<WiderLimits, 'refusalFor'>,
): CallRegistry {
  const perCaller = haveNames(callers) ? { maxPerCaller: limits.maxInFlightPerSession } : {};
  const { requestTimeoutMs, maxCallMs } = limits;
  return new CallRegistry({ ...parts, ...perCaller, widerLimits, requestTimeoutMs, maxCallMs });
}

/** Sessions of legacy clients, and what a stdio client has in their place. */
export function createSessions(
  { sessions, limits }: Pick<ServerConfig, 'sessions' | 'limits'>,
  parts: RegistryParts,
  beyond: { readonly storage?: SessionStorage | undefined; readonly widerLimits?: WiderLimits | undefined } = {},
): SessionRegistry {
  return new SessionRegistry({
    ...parts,
    ...beyond,
    maxSessions: sessions.maxSessions,
    maxPerCaller: sessions.maxSessionsPerCaller,
    maxCallsPerSession: limits.maxInFlightPerSession,
    sessionTimeoutMs: sessions.sessionTimeoutMs,
    idleTimeouts: sessions.idleTimeouts,
    requestTimeoutMs: limits.requestTimeoutMs,
    maxCallMs: limits.maxCallMs,
  });
}
