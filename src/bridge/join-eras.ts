import type { QueueSizes } from '../collections/queue-sizes.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { createLegacyToModernDialer } from '../eras/legacy-to-modern/dialer.ts';
import { MAX_LISTENING } from '../eras/modern-to-legacy/client-subscription.ts';
import { createModernToLegacyDialer } from '../eras/modern-to-legacy/dialer.ts';
import { LEGACY_POOL_LIMITS, type LegacyPoolLimits } from '../eras/modern-to-legacy/pool/legacy-pool.ts';
import type { Attribution } from '../eras/modern-to-legacy/pool/sole-owner.ts';
import type { ParkingLimits } from '../eras/modern-to-legacy/questions/parked-calls.ts';
import { isWebSocketUrl } from '../http/websocket/url.ts';
import type { CallDialer, SessionDialer } from '../relay/ports.ts';
import type { OutcomeStorage } from '../relay/shared-state.ts';
import { CLIENT_INFO } from '../version.ts';
import { areKeptApart, type CallerPolicy, countSharers } from './caller-policy.ts';

/** Serves legacy clients from a modern server. */
export function toModern(dialer: SessionDialer, deps: Deps): SessionDialer {
  return createLegacyToModernDialer({ dialer, deps, clientInfoFallback: CLIENT_INFO });
}

/** The part of the configuration of a server that sessions for modern clients depend on. */
export interface PooledServer extends Pick<ServerConfig, 'target' | 'sessions' | 'limits'> {
  readonly callers: CallerPolicy;
  readonly queues: QueueSizes;
  /** Storage for outcomes that outlive this process; undefined: none. */
  readonly outcomes: OutcomeStorage | undefined;
}

/** Serves modern clients from a legacy server. */
export function toLegacy(dialer: SessionDialer, server: PooledServer, deps: Deps): CallDialer {
  return createModernToLegacyDialer({
    dialer,
    deps,
    handshakeTimeoutMs: server.limits.requestTimeoutMs,
    clientInfo: CLIENT_INFO,
    attribution: attributionOf(server),
    sharing: areKeptApart(server.callers, server.sessions) ? 'nobody' : 'by-name',
    queues: server.queues,
    outcomes: server.outcomes,
    poolLimits: poolLimitsOf(server),
    parkingLimits: parkingLimitsOf(server),
    maxListeningPerCaller: Math.ceil(MAX_LISTENING / countSharers(server.callers)),
  });
}

export function parkingLimitsOf({ limits, callers }: Pick<PooledServer, 'limits' | 'callers'>): ParkingLimits {
  const { maxParkedCalls: total, maxParkedBytes: bytes } = limits;
  const sharers = countSharers(callers);
  return { total, bytes, perPrincipal: Math.ceil(total / sharers), bytesPerPrincipal: Math.ceil(bytes / sharers) };
}

/** Returns the limits of the pool of legacy sessions for clients without sessions. */
export function poolLimitsOf({
  sessions,
  callers,
}: Pick<PooledServer, 'sessions' | 'callers'>): Partial<LegacyPoolLimits> {
  const total = sessions.poolSize;
  const waiting = LEGACY_POOL_LIMITS.waiting;
  // The one name of unidentified callers, each with sessions of its own, does not stand for a single greedy caller.
  const sharers = areKeptApart(callers, sessions) ? 1 : countSharers(callers);
  return {
    total,
    perCaller: Math.ceil(total / sharers),
    waiting,
    waitingPerCaller: Math.ceil(waiting / sharers),
  };
}

/**
 * Returns how a server's request is attributed to a call. Over Streamable HTTP it arrives on the call's stream; on a
 * pipe or a WebSocket it arrives on the connection that all calls share.
 */
function attributionOf({ target, sessions }: PooledServer): Attribution {
  if (target.kind === 'url' && !isWebSocketUrl(target.url)) return 'stream';
  return sessions.isolation === 'shared' ? 'none' : 'lease';
}
