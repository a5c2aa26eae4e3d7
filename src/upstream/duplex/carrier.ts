import type { BridgeError } from '../../errors.ts';
import type { Call } from '../../relay/call.ts';
import type { ServerFault, ServerProcess } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

/**
 * Transfers whole messages to a server and back. This is the part of a duplex connection that differs between the pipes
 * of a process, a socket and a WebSocket.
 */
export interface Carrier {
  /** The server's process, if one was started for this connection. */
  readonly process: ServerProcess | undefined;
  /** True while too many sent bytes have not been accepted by the server. */
  readonly isFull: boolean;
  /** Accepts the message in any case. Returns false if the carrier is full now; `drained` follows. */
  send(frame: Frame, call: Call | undefined): boolean;
  /** Pauses reading. Messages received already, at most one chunk, are still delivered. */
  pause(): void;
  resume(): void;
  /** Ends the connection after pending messages have been sent. Called at most once, and not after `ended`. */
  close(reason: BridgeError): void;
}

/**
 * The connection that uses a carrier. The carrier may call it at any time, even after the connection has closed the
 * carrier.
 */
export interface CarrierListener {
  received(frame: Frame): void;
  /** Called when one received message could not be read. The connection continues. */
  faulted(fault: ServerFault): void;
  drained(): void;
  /** Called when another process carries the session on, with its answer to the handshake. */
  replaced?(answer: Frame): void;
  /** Called when the connection has ended. The carrier cleans up by itself. */
  ended(error: BridgeError): void;
}
