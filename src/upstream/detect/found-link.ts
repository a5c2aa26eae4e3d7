/** What those who look for a server, and the clients who wait for it, know of each other. */
import type { BridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

/** A client's request with the exchange it came by. */
export interface Request {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** A way to the server. One of the two is called, once. */
export interface FoundLink {
  /** The client takes it, and hears what the server may have said so far. Throws a BridgeError when it is gone. */
  open(client: ServerListener): UpstreamLink;
  /** The client has left meanwhile. */
  drop(reason: BridgeError): void;
}

/** Finds a link with the client's first message. Rejects with a BridgeError, or with the reason of the signal. */
export type FindLink = (first: Request, signal: AbortSignal) => Promise<FoundLink>;
