import type { BridgeError } from '../../../errors.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import type { Exchange, Lane } from '../../exchange.ts';
import type { UpstreamLink } from '../../ports.ts';
import type { SharedClient } from '../client-link.ts';
import type { ServerEnd } from '../shared-server.ts';
import type { AbandonedCall } from './attribution.ts';
import type { InitializeResult } from './initialize-result.ts';
import type { LegacyClient } from './legacy-client.ts';
import type { Owner, PendingCall } from './pending-calls.ts';

/** A request of the server. */
export interface ServerQuestion {
  readonly link: UpstreamLink;
  readonly question: Frame;
  /** The exchange on the link that it came with, where the transport can tell. */
  readonly known: Exchange | undefined;
  /** Says so to the server, later than `ask` could. */
  readonly refuse: (reason: BridgeError) => void;
}

/**
 * Who the clients of a shared legacy server are to each other: whom of them it may ask something, who hears what names
 * nobody, and what is kept from it and from them.
 */
export interface SharingPolicy {
  /** What the server is told in `initialize`. */
  readonly capabilities: Fields;
  /** The lane of everything that is sent to the server, whichever call it is for; undefined: it matters to nobody. */
  readonly lane: Lane | undefined;
  /** What names no owner, as tasks do, passes all the same. */
  readonly passesUnowned: boolean;

  /** Returns why nobody can be asked this; undefined: somebody is, or will be, or `refuse` is called. */
  ask(asked: ServerQuestion): BridgeError | undefined;
  /** The server withdraws what no client is being asked. */
  questionWithdrawn(id: JsonRpcId): void;
  elicitationCompleted(elicitationId: string, notification: Frame): void;
  /** Whose a message is that names no call. */
  unnamedOwner(): Owner;
  /** Whose a log message is that names no call. */
  logOwner(): Owner;
  /** Who is told that a resource has changed. */
  watchersOf(uri: string): Iterable<SharedClient<LegacyClient>>;

  /** A call was answered, and its client has the answer. */
  callAnswered(): void;
  /** A call was added to the abandoned ones. */
  callAbandoned(): void;
  /** The server has answered an abandoned call, which is none any more. */
  abandonedAnswered(call: AbandonedCall): void;
  /** Tells the client that its call ended with the child. */
  callLost(call: PendingCall, reason: BridgeError): void;

  /** The server announces that one of its lists has changed; all clients hear of it, too. */
  listChanged(method: string | undefined): void;
  /** True: a server of this kind was told the wrong thing; `capabilities` is another now, and it must be told anew. */
  redeclares(offer: InitializeResult): boolean;
  /** A child has answered the handshake. */
  served(offer: InitializeResult): void;
  /** The child is gone, and with it whatever it had asked. */
  ended(end: ServerEnd): void;
  close(): void;
}
