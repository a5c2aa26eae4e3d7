import type { BridgeError } from '../../../errors.ts';
import type { LogLevel } from '../../../mcp/vocabulary/client-declarations.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import type { Call, Lane } from '../../call.ts';
import type { UpstreamLink } from '../../ports.ts';
import type { ServerEnd } from '../shared-server.ts';
import type { AbandonedCall } from './attribution.ts';
import type { InitializeResult } from './initialize-result.ts';
import type { LegacyClient } from './legacy-client.ts';
import type { Owner, PendingCall } from './pending-calls.ts';

/** A request of the server. */
export interface ServerQuestion {
  readonly link: UpstreamLink;
  readonly question: Frame;
  /** The call on the link that it came with, where the transport can tell. */
  readonly known: Call | undefined;
  /** Says so to the server, later than `ask` could. */
  readonly refuse: (reason: BridgeError) => void;
}

/**
 * Policy for the clients of a shared legacy server: which of them the server may ask, which of them gets a message that
 * names no client, and what the bridge hides from the server and the clients.
 */
export interface SharingPolicy {
  /** The capabilities that the server is told in `initialize`. */
  readonly capabilities: Fields;
  /** The lane of every message to the server, with whichever call it is sent; undefined: no transport needs one. */
  readonly lane: Lane | undefined;
  /** Requests and notifications that name no owner, such as those about tasks, pass all the same. */
  readonly passesUnowned: boolean;

  /** Asks a client at once or later, or calls `refuse` later. Returns an error if nobody can be asked. */
  ask(asked: ServerQuestion): BridgeError | undefined;
  /** The server withdraws what no client is being asked. */
  questionWithdrawn(id: JsonRpcId): void;
  elicitationCompleted(elicitationId: string, notification: Frame): void;
  /** Returns the owner of a message that names no call. */
  unnamedOwner(): Owner;
  /** Returns the owner of a log message that names no call. */
  logOwner(): Owner;
  /** Returns the clients that are told that a resource has changed. */
  watchersOf(uri: string): Iterable<LegacyClient>;

  /** A call was answered, and its client has the answer. */
  callAnswered(): void;
  /** A call was added to the abandoned ones. */
  callAbandoned(): void;
  /** The server has answered an abandoned call, which is none anymore. */
  abandonedAnswered(abandoned: AbandonedCall): void;
  /** Tells the client that its call ended with the child. */
  callLost(pending: PendingCall, reason: BridgeError): void;

  /** A client leaves that wanted log messages of this level. Called before the server may be told to be quieter. */
  levelUnwanted(level: LogLevel, link: UpstreamLink): void;

  /** The server announces that one of its lists has changed; all clients hear of it, too. */
  listChanged(method: string | undefined): void;
  /** Returns true if a server of this kind has to be told other capabilities, which `capabilities` has from now on. */
  redeclares(offer: InitializeResult): boolean;
  /** A child has answered the handshake. */
  served(offer: InitializeResult): void;
  /** The child is gone, and with it whatever it had asked. */
  ended(end: ServerEnd): void;
  close(): void;
}
