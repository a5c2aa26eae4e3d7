import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { CallRegistry } from '../relay/call-registry.ts';
import type { Calls } from '../relay/calls.ts';
import type { CallerDialers } from '../relay/ports.ts';
import { SessionRegistry } from '../relay/sessions/session-registry.ts';
import type { SharedState } from '../relay/shared-state.ts';
import { type CallerPolicy, haveNames } from './caller-policy.ts';

export interface RegistryParts {
  readonly dialers: CallerDialers;
  /** Begins and ends all calls, within the limits of the whole bridge. */
  readonly calls: Calls;
  /** State shared with other bridges; undefined: there are no others. */
  readonly shared?: SharedState | undefined;
  readonly deps: Deps;
}

/** Creates the registry of the modern calls, which belong to no session. */
export function createModernCalls(
  { limits, callers }: Pick<ServerConfig, 'limits'> & { readonly callers: CallerPolicy },
  { shared, ...parts }: RegistryParts,
): CallRegistry {
  const perCaller = haveNames(callers) ? { maxSessionInFlight: limits.maxSessionInFlight } : {};
  const { requestTimeoutMs, maxCallTimeMs } = limits;
  const widerLimits = shared?.limits?.ofCalls;
  return new CallRegistry({ ...parts, ...perCaller, widerLimits, requestTimeoutMs, maxCallTimeMs });
}

/** Creates the registry of legacy clients' sessions, and of their equivalents on stdio. */
export function createSessions(
  { sessions, limits }: Pick<ServerConfig, 'sessions' | 'limits'>,
  { shared, ...parts }: RegistryParts,
): SessionRegistry {
  return new SessionRegistry({
    ...parts,
    storage: shared?.sessions,
    widerLimits: shared?.limits?.ofSessions,
    maxSessions: sessions.maxSessions,
    maxCallerSessions: sessions.maxCallerSessions,
    maxSessionInFlight: limits.maxSessionInFlight,
    sessionTimeoutMs: sessions.sessionTimeoutMs,
    idleTimeouts: sessions.idleTimeouts,
    requestTimeoutMs: limits.requestTimeoutMs,
    maxCallTimeMs: limits.maxCallTimeMs,
  });
}
