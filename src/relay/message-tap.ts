/** The interface of what records messages, for both sides of the bridge. Where nothing is recorded there is none. */
import type { Era } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import type { Call } from './call.ts';
import type { Transport } from './observer.ts';

/** Sees the messages of one session, call or connection, on one side of the bridge. */
export interface MessageTap {
  /**
   * Called with each message that arrives. Calls `handle`, once and before it returns, so that messages which are sent
   * meanwhile are known to be caused by this one. Throws only what `handle` throws.
   * @param call the call that the message belongs to according to the transport
   */
  received(frame: Frame, call: Call | undefined, handle: () => void): void;
  /** Called with each message before it is sent, and with the call that it belongs to, if that is known. */
  sent(frame: Frame, call: Call | undefined): void;
}

export interface TappedClient {
  readonly transport: Transport;
  readonly era: Era;
  /** The client's name as it is known before its first message. */
  readonly name?: string | undefined;
}

export interface TappedConnection {
  readonly transport: Transport;
  /** Undefined where one connection can carry either era. */
  readonly era: Era | undefined;
}

/** Creates the taps of one server and its clients. */
export interface MessageTaps {
  /** A session of a client, or all modern requests of a client on a pipe. */
  session(client: TappedClient): MessageTap;
  /** A modern request that comes alone. */
  call(client: TappedClient): MessageTap;
  /** A connection to the server. */
  connection(connection: TappedConnection): MessageTap;
}
