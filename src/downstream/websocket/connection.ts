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
  /** Called when the client ended the connection or it broke, not when the bridge closed it. */
  readonly onEnd: (end: ConnectionEnd) => void;
  /** This connection's share of the memory for incoming messages of all clients. */
  readonly arriving: ArrivingMessage;
}

/** A WebSocket as the connection of one client. Each piece is one message. */
export class ClientWebSocket implements MessageConnection, WebSocketListener {
  readonly unit = 'message';
  readonly #listener: ConnectionListener;
  readonly #webSocket: WebSocketConnection;
  readonly #onEnd: ClientWebSocketOptions['onEnd'];
  readonly #arriving: ArrivingMessage;

  constructor(options: ClientWebSocketOptions, listener: ConnectionListener) {
    const { stream, onEnd, arriving } = options;
    this.#listener = listener;
    this.#onEnd = onEnd;
    this.#arriving = arriving;
    this.#webSocket = new WebSocketConnection(options, this);
    stream.once('close', () => void arriving.holds(0));
  }

  // ---- from the client

  message(bytes: Buffer): void {
    this.#listener.read(bytes);
  }

  holds(bytes: number): void {
    if (this.#arriving.holds(bytes)) return;
    this.#arriving.holds(0);
    this.#webSocket.dismiss(closeCodeOf(TOO_MANY_ARRIVE), TOO_MANY_ARRIVE.message);
    this.#listener.crowded();
  }

  drained(): void {
    this.#listener.drained();
  }

  /** A WebSocket ends in both directions at once, so the client no longer reads. */
  ended(end: ConnectionEnd): void {
    this.#onEnd(end);
    this.#listener.readerGone();
  }

  // ---- from the endpoint

  take(message: Buffer): undefined {
    this.#listener.message(message);
    return undefined;
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
