import type { Deps } from '../../deps.ts';
import { DecoratedDialer, type DecorateSession } from '../../relay/passing-link.ts';
import type { UpstreamDialer } from '../../relay/ports.ts';
import { SessionState } from '../../relay/sessions/session-state.ts';
import { RestoringLink, type RestoringOptions } from './restoring-link.ts';

export interface RevivingOptions {
  readonly deps: Deps;
  /** How long the handshake of a new connection may take; 0: no limit. */
  readonly handshakeTimeoutMs: number;
}

/**
 * Goes on with a new connection when one is lost: for a client that cannot be told to open a new session, because its
 * session is its pipe. Calls in flight fail; handshake, log level and subscriptions are repeated.
 */
export function createRevivingDialer(revived: UpstreamDialer, options: RevivingOptions): UpstreamDialer {
  const reviving = { ...options, afterLoss: 'goes-on', begins: 'at-once' } as const;
  return new DecoratedDialer(
    revived,
    (dialer, listener) => new RestoringLink(dialer, listener, { ...reviving, session: new SessionState() }),
  );
}

/**
 * Keeps sessions up to date that are stored, and goes on with those that another bridge has stored, where the server does
 * not know them any more: because they ended with their connection, or because it keeps none. Whatever is not stored
 * passes by.
 */
export function keepStoredSessions(options: RevivingOptions & Pick<RestoringOptions, 'begins'>): DecorateSession {
  return (dialer, listener, session, sent) =>
    session === undefined
      ? dialer.dial(listener)
      : new RestoringLink(dialer, listener, { ...options, afterLoss: 'ends', session, sent });
}
