import { type ArrivingMessage, TOO_MANY_ARRIVE } from '../../http/server/read-body.ts';
import { closeCodeOf } from '../../http/websocket/close-codes.ts';
import {
  type ConnectionEnd,
  WebSocketConnection,
  type WebSocketConnectionOptions,
  type WebSocketListener,
} from '../../http/websocket/connection.ts';
import type { ConnectionListener, MessageConnection } from '../duplex/message-connection.ts';

export interface ClientWebSocketOptions extends WebSocketConnectionOptions {
  /** The client has ended it, or it broke. Not said when it was closed from here. */
  readonly onEnd: (end: ConnectionEnd) => void;
  /** Its part of what all clients may have on their way in. */
  readonly arriving: ArrivingMessage;
}

/** Length and mask of a frame that holds no message. [RFC 6455 5.2] */
const CONTROL_HEAD_BYTES = 6;

/** A WebSocket as the connection of one client: each message is a piece of its own. */
export class ClientWebSocket implements MessageConnection, WebSocketListener {
  readonly unit = 'message';
  readonly #listener: ConnectionListener;
  readonly #webSocket: WebSocketConnection;
  readonly #onEnd: ClientWebSocketOptions['onEnd'];
  readonly #stream: ClientWebSocketOptions['stream'];
  readonly #arriving: ArrivingMessage;
  /** Bytes read that belong to messages that have arrived whole. */
  #doneBytes: number;

  constructor(options: ClientWebSocketOptions, listener: ConnectionListener) {
    const { socket, stream, onEnd, arriving } = options;
    this.#listener = listener;
    this.#onEnd = onEnd;
    this.#stream = stream;
    this.#arriving = arriving;
    this.#doneBytes = stream.bytesRead;
    this.#webSocket = new WebSocketConnection(options, this);
    // The library, which listens ahead of this, keeps what it has of a message to itself.
    const arrived = (): void => this.#arrived();
    stream.on('data', arrived);
    const control = (data: Buffer): void => this.#control(data.length);
    socket.on('ping', control);
    socket.on('pong', control);
    stream.once('close', () => {
      stream.off('data', arrived);
      arriving.holds(0);
    });
  }

  // ---- from the client

  /** The beginning of the next one may have been read with it, which is at most one chunk. */
  message(bytes: Buffer): void {
    this.#doneBytes = this.#stream.bytesRead;
    this.#listener.read(bytes);
  }

  /** They may stand between the parts of a message. */
  #control(length: number): void {
    this.#doneBytes += length + CONTROL_HEAD_BYTES;
  }

  #arrived(): void {
    if (this.#arriving.holds(this.#stream.bytesRead - this.#doneBytes)) return;
    this.#arriving.holds(0);
    this.#webSocket.dismiss(closeCodeOf(TOO_MANY_ARRIVE), TOO_MANY_ARRIVE.message);
    this.#listener.crowded();
  }

  drained(): void {
    this.#listener.drained();
  }

  /** Both directions end together. */
  ended(end: ConnectionEnd): void {
    this.#onEnd(end);
    this.#listener.readerGone();
  }

  // ---- from the endpoint

  take(message: Buffer): void {
    this.#listener.message(message);
  }

  takeRest(): void {}

  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  send(message: Buffer): boolean {
    return this.#webSocket.send(message);
  }

  get waitingBytes(): number {
    return this.#webSocket.waitingBytes;
  }

  flush(): Promise<void> {
    return this.#webSocket.flush();
  }

  cut(): void {
    this.#webSocket.cut();
  }

  close(code: number, reason: string): void {
    this.#webSocket.close(code, reason);
  }
}
