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
}

/** A WebSocket as the connection of one client: each message is a piece of its own. */
export class ClientWebSocket implements MessageConnection, WebSocketListener {
  readonly unit = 'message';
  readonly #listener: ConnectionListener;
  readonly #webSocket: WebSocketConnection;
  readonly #onEnd: ClientWebSocketOptions['onEnd'];

  constructor(options: ClientWebSocketOptions, listener: ConnectionListener) {
    this.#listener = listener;
    this.#onEnd = options.onEnd;
    this.#webSocket = new WebSocketConnection(options, this);
  }

  // ---- from the client

  message(bytes: Buffer): void {
    this.#listener.read(bytes);
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

  flush(): Promise<void> {
    return this.#webSocket.flush();
  }

  close(code: number, reason: string): void {
    this.#webSocket.close(code, reason);
  }
}
