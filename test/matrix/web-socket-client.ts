import { once } from 'node:events';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { WebSocket } from 'ws';

// Node has one of its own only from version 22, and the transport of the SDK v1 uses that.
globalThis.WebSocket ??= WebSocket as unknown as typeof globalThis.WebSocket;

/** The SDK v2 has no transport over WebSocket; this one is made of `ws`. */
export class WebSocketTransport implements Transport {
  onmessage: NonNullable<Transport['onmessage']> | undefined;
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  readonly #url: URL;
  #socket: WebSocket | undefined;

  constructor(url: URL) {
    this.#url = url;
  }

  async start(): Promise<void> {
    const socket = new WebSocket(this.#url, 'mcp', { perMessageDeflate: false });
    this.#socket = socket;
    socket.on('error', (error) => this.onerror?.(error));
    await once(socket, 'open');
    socket.on('message', (data) => this.onmessage?.(JSON.parse(String(data)) as JSONRPCMessage));
    socket.on('close', () => this.onclose?.());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#socket?.send(JSON.stringify(message));
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined || socket.readyState === WebSocket.CLOSED) return;
    const closed = once(socket, 'close');
    socket.close();
    await closed;
  }
}
