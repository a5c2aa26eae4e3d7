import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { createLegacyToModernDialer } from '../eras/legacy-to-modern/dialer.ts';
import { createModernToLegacyDialer } from '../eras/modern-to-legacy/dialer.ts';
import type { ParkingLimits } from '../eras/modern-to-legacy/parked-calls.ts';
import { MAX_LISTENING } from '../eras/modern-to-legacy/subscription-slots.ts';
import { affinityOf, keepsStrangersApart } from '../http/auth/affinity.ts';
import { LEGACY_POOL_LIMITS, type LegacyPoolLimits } from '../relay/legacy-pool.ts';
import type { Attribution } from '../relay/legacy-session.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { CLIENT_INFO } from '../version.ts';

/** A modern server for legacy clients. */
export function toModern(dialer: UpstreamDialer, deps: Deps): UpstreamDialer {
  return createLegacyToModernDialer({ dialer, deps, clientInfoFallback: CLIENT_INFO });
}

/** A legacy server for modern clients. */
export function toLegacy(dialer: UpstreamDialer, config: Config, deps: Deps): UpstreamDialer {
  return createModernToLegacyDialer({
    dialer,
    deps,
    handshakeTimeoutMs: config.limits.requestTimeoutMs,
    clientInfo: CLIENT_INFO,
    attribution: attributionOf(config),
    affinityOf: affinityOf(config),
    poolLimits: poolLimitsOf(config),
    parkingLimits: parkingLimitsOf(config),
    maxListeningPerCaller: Math.ceil(MAX_LISTENING / sharersOf(config)),
  });
}

/** One of several callers leaves half to others, as of sessions. */
function sharersOf({ access }: Config): number {
  return access.callerNames === 'several' ? 2 : 1;
}

export function parkingLimitsOf(config: Config): ParkingLimits {
  const { maxParkedCalls: total, maxParkedBytes: bytes } = config.limits;
  const callers = sharersOf(config);
  return { total, bytes, perPrincipal: Math.ceil(total / callers), bytesPerPrincipal: Math.ceil(bytes / callers) };
}

/** How many sessions of a legacy server there may be for clients that have none. */
export function poolLimitsOf(config: Config): Partial<LegacyPoolLimits> {
  const total = config.sessions.poolSize;
  const waiting = LEGACY_POOL_LIMITS.waiting;
  // One name that stands for many strangers, each with sessions of its own, is not one caller who takes too much.
  const sharers = keepsStrangersApart(config) ? 1 : sharersOf(config);
  return {
    total,
    perCaller: Math.ceil(total / sharers),
    waiting,
    waitingPerCaller: Math.ceil(waiting / sharers),
  };
}

/** A server over Streamable HTTP says what it asks on the stream of the call; one on a pipe says it to everybody there. */
function attributionOf({ target, sessions }: Config): Attribution {
  if (target.kind === 'url') return 'stream';
  return sessions.isolation === 'shared' ? 'none' : 'lease';
}
