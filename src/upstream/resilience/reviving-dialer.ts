import type { Deps } from '../../deps.ts';
import { DecoratedDialer, type DecorateSession } from '../../relay/passing-link.ts';
import type { UpstreamDialer } from '../../relay/ports.ts';
import { SessionState } from '../../relay/sessions/session-state.ts';
import { RestoringLink, type RestoringOptions } from './restoring-link.ts';

export interface RevivingOptions {
  readonly deps: Deps;
  /** Time limit for the handshake of a new connection. 0 means no limit. */
  readonly handshakeTimeoutMs: number;
}

/**
 * Replaces a lost connection, for a client that cannot be made to open a new session because its session is its pipe.
 * Open calls fail. Handshake, log level and subscriptions are repeated.
 */
export function createRevivingDialer(revived: UpstreamDialer, options: RevivingOptions): UpstreamDialer {
  const reviving = { ...options, afterLoss: 'goes-on', begins: 'at-once' } as const;
  return new DecoratedDialer(
    revived,
    (dialer, listener) => new RestoringLink(dialer, listener, { ...reviving, session: new SessionState() }),
  );
}

/**
 * Keeps the state of stored sessions up to date. Continues sessions of other bridges that the server does not know any
 * more, because they ended with their connection or because the server keeps none. Sessions that are not stored are not
 * wrapped.
 */
export function keepStoredSessions(options: RevivingOptions & Pick<RestoringOptions, 'begins'>): DecorateSession {
  return (dialer, listener, session, sent) =>
    session === undefined
      ? dialer.dial(listener)
      : new RestoringLink(dialer, listener, { ...options, afterLoss: 'ends', session, sent });
}
