import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { type BridgeError, OWN_SERVER } from '../../errors.ts';
import { LineWriter } from '../../io/line-writer.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { ServerLines } from '../server-messages.ts';
import { connectError, connectTimeout, endError } from './connect-error.ts';

/** A server that has been told the end has so long to close its side, too. */
export const CLOSE_GRACE_MS = 1000;

export interface ByteStreamCarrierOptions {
  /** The server's address, as it may be shown. */
  readonly name: string;
  /** A socket that has begun to connect. */
  readonly socket: Socket;
  /** Returns true if the connection leads to an address at which this process itself listens. */
  readonly isOwn: (socket: Socket) => boolean;
  /** What tells that it is connected: over TLS that is later. */
  readonly connectedEvent: 'connect' | 'secureConnect';
  /** 0: no limit. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  readonly failureLevel: 'warn' | 'debug';
  /** Is told that the server could be reached, or why not. */
  readonly reachable: (error: BridgeError | undefined) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * - `connecting`: what is sent waits in the socket.
 * - `open`: messages flow.
 * - `closed`: the connection has let go, or has been told of the end.
 */
type CarrierState = 'connecting' | 'open' | 'closed';

/** A socket to a server that takes lines. */
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
  /** Resolves when nothing is left of the connection. */
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
    // What it has said comes before the end of it, also where the relay has stopped reading meanwhile.
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

  /** At once, with whatever has not been sent. */
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

  /** What was sent last still goes out; the server is read on, or its own end would never be seen. */
  #letGo(): void {
    this.#writer.flush();
    this.#socket.end();
    this.#socket.resume();
    this.#cancelTimer = this.#options.clock.after(CLOSE_GRACE_MS, () => this.#socket.destroy());
  }
}
