import { ListMember } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Call } from '../call.ts';
import { ModernCall } from '../modern-call.ts';
import type { ServerListener, UpstreamLink } from '../ports.ts';

/** A shared server as one of its clients sees it. */
export interface ClientHost<Client> {
  /** Adds the client to those of the server. Throws a BridgeError if the server does not run and cannot be started now. */
  join(client: Client): void;
  /** Takes a message of a client that has joined. Returns false if the server is full; `serverDrained` follows. */
  send(client: Client, frame: Frame, call: Call | undefined): boolean;
  /** Removes the client, and withdraws what it has open at the server. */
  leave(client: Client): void;
}

/**
 * A client of a shared server. It is in the server's list from when it joins until it leaves. If the client has a relay,
 * this is the relay's link.
 */
export abstract class SharedClient extends ListMember implements UpstreamLink {
  /** Hears what the server says to this client. */
  abstract listener: ServerListener;
  /** Number of the client's calls that the server is at work on. */
  openCalls = 0;
  /** Undefined before the client has joined, and after it has left. */
  #server: ClientHost<this> | undefined = undefined;

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  /** Throws what `ClientHost.join` throws. */
  join(server: ClientHost<this>): void {
    server.join(this);
    this.#server = server;
  }

  send(frame: Frame, call?: Call): boolean {
    return this.#server === undefined || this.#server.send(this, frame, call);
  }

  /**
   * The server is not paused, because that would stop it for every client. The transport of a slow client bounds what
   * the client has not read, and meanwhile holds back the client's own messages.
   */
  pause(): void {}
  resume(): void {}

  /** May be called twice. */
  leave(): void {
    const server = this.#server;
    this.#server = undefined;
    server?.leave(this);
  }

  close(_reason: BridgeError): void {
    this.leave();
  }
}

/**
 * The sender of a message to a shared server, which gets the answer: a client that has joined, or a modern call, which
 * comes alone and belongs to no client here. Only modern servers take such calls. Each sender is in a list, and leaves
 * it when the client has left or the call is over.
 */
export type Sender = SharedClient | ModernCall;

/** Passes a message of the server to the sender of the request that it is about. */
export function deliver(sender: Sender, call: Call | undefined, frame: Frame): void {
  if (sender instanceof ModernCall) sender.fromServer(frame);
  else sender.listener.fromServer(frame, call);
}

/** Returns the call that a request begins. Every request has one. */
export function callOf(request: Frame, call: Call | undefined): Call {
  if (call === undefined) throw new Error(`${request.method} was sent without its call`);
  return call;
}

/** Returns true if the call that a message is about was answered or withdrawn meanwhile. */
export function isOver(call: Call | undefined): boolean {
  return call !== undefined && call.state.kind !== 'open';
}

/**
 * Answers a request with the reason. No other message has an answer. Returns what its sender's `send` returns: the
 * server's pipe is no fuller than before.
 */
export function refuse(sender: Sender, frame: Frame, call: Call | undefined, reason: BridgeError): true {
  if (frame.kind === 'request' && !isOver(call)) {
    deliver(sender, call, errorFrame(idToken(frame), rpcErrorOf(reason)));
  }
  return true;
}
