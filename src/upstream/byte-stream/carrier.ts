import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { type BridgeError, OWN_SERVER } from '../../errors.ts';
import { LineWriter } from '../../io/line-writer.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { ServerLines } from '../server-messages.ts';
import { connectError, connectTimeout, endError } from './connect-error.ts';

/** Time that a server has to close its side after ours has been closed. */
export const CLOSE_GRACE_MS = 1000;

export interface ByteStreamCarrierOptions {
  /** The server's address, as it may be shown. */
  readonly name: string;
  /** Socket that is connecting. */
  readonly socket: Socket;
  /** Returns true if the connection leads to an address at which this process itself listens. */
  readonly isOwn: (socket: Socket) => boolean;
  /** Event of the socket that means it is connected. Over TLS this is the end of the TLS handshake. */
  readonly connectedEvent: 'connect' | 'secureConnect';
  /** Time limit for connecting; 0 means no limit. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  readonly failureLevel: 'warn' | 'debug';
  /** Called with undefined when the server was reached, otherwise with the reason. */
  readonly reachable: (error: BridgeError | undefined) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * - `connecting`: messages wait in the socket.
 * - `open`: messages are exchanged.
 * - `closed`: the connection has closed the carrier, or has been told of the end.
 */
type CarrierState = 'connecting' | 'open' | 'closed';

/** A socket to a server that exchanges messages as lines. */
export class ByteStreamCarrier implements Carrier {
  readonly process = undefined;
  readonly #options: ByteStreamCarrierOptions;
  readonly #listener: CarrierListener;
  readonly #socket: Socket;
  readonly #lines: ServerLines;
  readonly #writer: LineWriter;
  #state: CarrierState = 'connecting';
  #hasServed = false;
  #cause: unknown;
  #cancelTimer = (): void => {};
  /** Resolves when the socket is closed. */
  readonly gone: Promise<void>;

  constructor(options: ByteStreamCarrierOptions, listener: CarrierListener) {
    const { name, socket, connectedEvent, connectTimeoutMs, maxMessageBytes, clock, log } = options;
    this.#options = options;
    this.#listener = listener;
    this.#socket = socket;
    const sink = {
      message: (frame: Frame) => this.#message(frame),
      fault: listener.faulted.bind(listener),
      unreadable: (error: BridgeError) => this.#unreadable(error),
    };
    const noiseWarning = 'the server sends something that is not MCP';
    this.#lines = new ServerLines({ name, maxMessageBytes, noiseWarning, sink, log: log.child({ address: name }) });
    this.#writer = new LineWriter(socket, () => listener.drained());
    socket.on(connectedEvent, () => this.#connected());
    socket.on('data', (chunk: Buffer) => {
      if (this.#state !== 'closed') this.#lines.push(chunk);
    });
    // Node emits `end` after all data, also when the relay has paused the socket meanwhile, so messages precede the
    // end.
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => {
      this.#cause = error;
    });
    this.gone = new Promise((resolve) => {
      socket.on('close', () => {
        this.#ended();
        this.#cancelTimer();
        resolve();
      });
    });
    if (connectTimeoutMs > 0) this.#cancelTimer = clock.after(connectTimeoutMs, () => this.#tooLate(connectTimeoutMs));
  }

  // ---- from the connection

  get isFull(): boolean {
    return this.#writer.isFull;
  }

  send({ bytes }: Frame): boolean {
    return this.#writer.send(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(reason: BridgeError): void {
    const isConnected = this.#state === 'open';
    this.#leave();
    this.#options.log.debug({ address: this.#options.name, code: reason.code }, 'link closed, ending the connection');
    if (isConnected) this.#letGo();
    else this.#socket.destroy();
  }

  /** Destroys the socket at once. Unsent messages are lost. */
  destroy(): void {
    this.#leave();
    this.#socket.destroy();
  }

  // ---- from the socket

  #connected(): void {
    this.#cancelTimer();
    if (this.#state !== 'connecting') return;
    const { name, isOwn, reachable, log } = this.#options;
    if (isOwn(this.#socket)) {
      this.#failed(OWN_SERVER);
      this.#socket.destroy();
      return;
    }
    this.#state = 'open';
    log.debug({ address: name }, 'connected');
    reachable(undefined);
  }

  #tooLate(timeoutMs: number): void {
    this.#failed(connectTimeout(this.#options.name, timeoutMs));
    this.#socket.destroy();
  }

  #ended(): void {
    if (this.#state === 'closed') return;
    const { name, failureLevel, log } = this.#options;
    if (this.#state === 'connecting') return this.#failed(connectError(name, this.#cause));
    this.#lines.end();
    const { noise } = this.#lines;
    const error = endError({ name, cause: this.#cause, hasServed: this.#hasServed, noise });
    log[failureLevel]({ address: name, code: error.code }, error.message);
    this.#tell(error);
  }

  #failed(error: BridgeError): void {
    const { name, failureLevel, reachable, log } = this.#options;
    log[failureLevel]({ address: name, code: error.code }, error.message);
    reachable(error);
    this.#tell(error);
  }

  #message(frame: Frame): void {
    if (frame.isResponse) this.#hasServed = true;
    this.#listener.received(frame);
  }

  #unreadable(error: BridgeError): void {
    if (this.#state === 'closed') return;
    this.#failed(error);
    this.#letGo();
  }

  #tell(error: BridgeError): void {
    this.#leave();
    this.#listener.ended(error);
  }

  #leave(): void {
    this.#state = 'closed';
    this.#cancelTimer();
  }

  /**
   * Ends the connection. Pending messages are still sent. Received data is still read, because otherwise the server's
   * end would not be noticed.
   */
  #letGo(): void {
    this.#writer.flush();
    this.#socket.end();
    this.#socket.resume();
    this.#cancelTimer = this.#options.clock.after(CLOSE_GRACE_MS, () => this.#socket.destroy());
  }
}
