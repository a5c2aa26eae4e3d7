import type { Fields } from '../../mcp/vocabulary/payload.ts';
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
  /**
   * For sessions of legacy clients at a legacy server, where they share it: the bridge makes the handshake, and with
   * these capabilities. Absent: each has a connection to itself and makes its own.
   */
  readonly legacy?: { readonly dialer: SessionDialer; readonly capabilities: Fields } | undefined;
  /** Called when the era of the server was found out before a client came: its dialer is to be made ready. */
  warm?(era: Era): void;
}

/** Makes the joined dialers, which use those of the eras. What it makes belongs to the caller. */
export type JoinEras = (dialers: EraDialers) => JoinedDialers;
