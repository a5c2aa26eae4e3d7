/** Parses the options for sessions and child processes: how many there may be, and how long they live. */
import { type AccessConfig, hasSeveralNames } from '../../../config/access.ts';
import type { Isolation, ServerConfig, SessionConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';

/** The default pool is small for processes: each costs as much as a connected client, and users do not see them. */
const POOLED_PROCESSES = 16;
const POOLED_SESSIONS = 256;

/**
 * A client that closed its stream and has not come back after this time is assumed to have left, which is right in
 * nearly all cases. The data for resuming its calls is not kept any longer either. See
 * docs/internals/decisions/0018-lifetimes.md.
 */
const LEFT_MS = 5 * 60_000;

/** The parts of a server's configuration that the default limits depend on. */
interface Served extends Pick<ServerConfig, 'target' | 'mapHeaders' | 'hubs'> {
  readonly access: Pick<AccessConfig, 'auth'>;
}

export interface ParsedSessions {
  readonly sessions: SessionConfig;
  readonly maxChildren: number;
}

export function parseSessions(given: GivenOptions, { target, access, mapHeaders, hubs }: Served): ParsedSessions {
  const maxSessions = given.get('maxSessions');
  const isolation: Isolation = given.get('isolation');
  // A server of gRPC has many streams by its nature, as one over HTTP has sessions.
  const isProcessEach = target.kind !== 'url' && target.kind !== 'grpc' && isolation === 'session';
  const poolSize = given.get('poolSize') ?? (isProcessEach ? POOLED_PROCESSES : POOLED_SESSIONS);
  const sessionTimeoutMs = given.get('sessionTimeout');
  const idleMs = given.get('sessionIdleTimeout');
  const sessions: SessionConfig = {
    isolation,
    prewarm: given.get('prewarm'),
    sessionTimeoutMs,
    idleTimeouts: { leftMs: idleMs ?? LEFT_MS, quietMs: idleMs ?? sessionTimeoutMs },
    maxSessions,
    maxCallerSessions:
      given.get('maxCallerSessions') ??
      (hubs.length > 0 || hasSeveralNames(access, mapHeaders) ? Math.ceil(maxSessions / 2) : maxSessions),
    poolSize,
    pollAfterMs: given.get('pollAfter'),
  };
  const maxChildren = given.get('maxChildren') ?? 2 * maxSessions + poolSize;
  if (sessions.prewarm > 1 && sessions.isolation === 'shared') {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${given.placeOf('prewarm')} ${sessions.prewarm} keeps spare processes for new sessions, but with ${given.placeOf('isolation')} shared all sessions use one; expected at most 1, which starts it ahead of the first client.`,
    );
  }
  if (sessions.prewarm > sessions.maxSessions) {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${given.placeOf('prewarm')} ${sessions.prewarm} would keep more spare processes than the ${sessions.maxSessions} sessions ${given.placeOf('maxSessions')} allows; lower one or raise the other.`,
    );
  }
  if (sessions.prewarm > maxChildren) {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${given.placeOf('prewarm')} ${sessions.prewarm} would start more processes than the ${maxChildren} ${given.placeOf('maxChildren')} allows; lower one or raise the other.`,
    );
  }
  return { sessions, maxChildren };
}
