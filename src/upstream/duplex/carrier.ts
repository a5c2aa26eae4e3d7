import type { BridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerFault, ServerProcess } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

/**
 * Carries whole messages to a server and back: the part of a duplex connection that differs between the pipes of a
 * process, a socket and a WebSocket.
 */
export interface Carrier {
  /** Present where the server runs in a process that was started for this connection. */
  readonly process: ServerProcess | undefined;
  /** True while the server has not taken what was sent before. */
  readonly isFull: boolean;
  /** Takes the message in any case. False: the carrier is full now, and `drained` follows. */
  send(frame: Frame, exchange: Exchange | undefined): boolean;
  /** Messages that have arrived already, at most one chunk's worth, are still delivered. */
  pause(): void;
  resume(): void;
  /** Ends the connection once what was sent has left. Called once at most, and not after `ended`. */
  close(reason: BridgeError): void;
}

/** A connection as its carrier sees it. It may be told of anything at any time, also after it has closed the carrier. */
export interface CarrierListener {
  received(frame: Frame): void;
  /** One message could not be taken. */
  faulted(fault: ServerFault): void;
  drained(): void;
  /** The connection is over. The carrier ends by itself what is left of it. */
  ended(error: BridgeError): void;
}
