import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { CallDialer, SessionDialer, UpstreamDialer } from '../../relay/ports.ts';

/** The dialers of one server, for each era it may speak. Whoever made them closes them, after the joined dialers. */
export interface EraDialers {
  /** Opens sessions of the legacy era, and is never used for the other era. */
  readonly legacy: SessionDialer;
  /** Opens links for requests of the modern era. */
  readonly modern: UpstreamDialer;
}

/** The dialers for clients whose era the server does not speak, or for whom their own era needs more than a link. */
export interface JoinedDialers {
  /** For sessions of legacy clients at a modern server. */
  readonly legacyToModern: SessionDialer;
  /** For requests of modern clients at a legacy server. */
  readonly modernToLegacy: CallDialer;
  /** For requests of modern clients at a modern server. */
  readonly modern: CallDialer;
  readonly sessions: JoinedSessions;
}

/** For sessions of legacy clients at a legacy server. */
export type JoinedSessions =
  /** Each has a connection to itself, and makes its own handshake there. */
  | { readonly kind: 'own' }
  /** They share one server of either era. */
  | {
      readonly kind: 'shared';
      readonly dialer: SessionDialer;
      /**
       * The next connection of the dialer below has been through a handshake in the name of the bridge, with this result.
       * False: it is of no use, and has to be closed.
       */
      startInitialized(result: object): boolean;
      /** The era was found out: its server is to be started and kept running, clients or not. */
      warm(era: Era): void;
    };

/** Makes the joined dialers, which use those of the eras. What it makes belongs to the caller. */
export type JoinEras = (dialers: EraDialers) => JoinedDialers;
