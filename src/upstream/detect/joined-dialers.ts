import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { CallDialer, SessionDialer, UpstreamDialer } from '../../relay/ports.ts';

/** The dialers of one server, for each era that it may speak. Their maker closes them, after the joined dialers. */
export interface EraDialers {
  /** Opens sessions of the legacy era, and is never used for the other era. */
  readonly legacy: SessionDialer;
  /** Opens links for requests of the modern era. */
  readonly modern: UpstreamDialer;
  /**
   * Opens a connection of the modern era for one session. A process that hangs there is not ended, because its client
   * ends it by leaving.
   */
  readonly modernForOne: SessionDialer;
}

/** The dialers for each pair of a client's and a server's era, made from those of the server. */
export interface JoinedDialers {
  /** For sessions of legacy clients at a modern server. */
  readonly legacyToModern: SessionDialer;
  /** For requests of modern clients at a legacy server. */
  readonly modernToLegacy: CallDialer;
  /** For requests of modern clients at a modern server. */
  readonly modern: CallDialer;
  readonly sessions: JoinedSessions;
}

/** The treatment of legacy clients at a legacy server. */
export type JoinedSessions =
  /** Each session has a connection to itself, and makes its own handshake there. */
  | { readonly kind: 'own' }
  /** All sessions share one server of either era. */
  | {
      readonly kind: 'shared';
      readonly dialer: SessionDialer;
      /**
       * Announces that the next connection of the dialer below has been initialized in the name of the bridge, with
       * this result. Returns false if such a connection is of no use and has to be closed.
       */
      startInitialized(result: object): boolean;
      /** Called when the era was detected. The server is started and kept running, even without clients. */
      warm(era: Era): void;
    };

/** Makes the joined dialers from those of the eras. The caller owns and closes them. */
export type JoinEras = (dialers: EraDialers) => JoinedDialers;
