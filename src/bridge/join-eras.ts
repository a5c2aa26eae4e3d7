import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { createLegacyToModernDialer } from '../eras/legacy-to-modern/dialer.ts';
import { createModernToLegacyDialer, type ModernToLegacyOptions } from '../eras/modern-to-legacy/dialer.ts';
import { affinityOf } from '../http/auth/affinity.ts';
import type { UpstreamDialer } from '../relay/ports.ts';
import { CLIENT_INFO } from './client-info.ts';

/** A modern server for legacy clients. */
export function toModern(dialer: UpstreamDialer, deps: Deps): UpstreamDialer {
  return createLegacyToModernDialer({ dialer, deps, clientInfoFallback: CLIENT_INFO });
}

/** A legacy server for modern clients. */
export function toLegacy(
  dialer: UpstreamDialer,
  config: Config,
  deps: Deps,
  limits: Pick<ModernToLegacyOptions, 'poolLimits'> = {},
): UpstreamDialer {
  return createModernToLegacyDialer({
    dialer,
    deps,
    handshakeTimeoutMs: config.limits.requestTimeoutMs,
    clientInfo: CLIENT_INFO,
    affinityOf: affinityOf(config),
    ...limits,
  });
}
