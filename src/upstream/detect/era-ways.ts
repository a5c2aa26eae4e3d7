import type { Fields } from '../../mcp/payload.ts';
import type { Era } from '../../mcp/revisions.ts';
import type { UpstreamDialer } from '../../relay/ports.ts';

/** One server, spoken to in either era. Closed by who made them, after the ways. */
export interface EraDialers {
  /** Sessions of the legacy era. It is never asked for the other one. */
  readonly legacy: UpstreamDialer;
  /** Requests of the modern era. */
  readonly modern: UpstreamDialer;
}

/** How clients get to a server that does not speak their era, or has to be reached in a special way in their own. */
export interface EraWays {
  /** For sessions of legacy clients. */
  readonly legacyToModern: UpstreamDialer;
  /** For requests of modern clients. */
  readonly modernToLegacy: UpstreamDialer;
  readonly modern: UpstreamDialer;
  /**
   * For sessions of legacy clients at a legacy server, where they share it: the bridge makes the handshake, and with
   * these capabilities. Absent: each has a connection to itself and makes its own.
   */
  readonly legacy?: { readonly dialer: UpstreamDialer; readonly capabilities: Fields } | undefined;
  /** The era of the server was found out before a client came: it is to be made ready. */
  warm?(era: Era): void;
}

/** Makes the ways, which use the dialers. What it makes belongs to the caller. */
export type JoinEras = (dialers: EraDialers) => EraWays;
