import { WebSocket, WebSocketServer } from 'ws';
import { serveHttp } from './serve-http.js';

/**
 * Listens as `serveHttp` does, for WebSockets.
 *
 * @param {object} options
 * @param {string} options.path
 * @param {string} options.place
 * @param {import('./record.js').ServerRecord} options.record
 * @param {(socket: WebSocket) => void} options.connected
 */
export function serveWebSockets({ connected, ...options }) {
  const server = serveHttp({ ...options, scheme: 'ws' });
  new WebSocketServer({ server }).on('connection', connected);
}

/**
 * A transport of either SDK over a connection of `ws`.
 *
 * @param {WebSocket} socket
 */
export function transportOver(socket) {
  /** @type {any} */
  const transport = {
    async start() {
      socket.on('message', (data) => transport.onmessage?.(JSON.parse(String(data))));
      socket.on('close', () => transport.onclose?.());
      socket.on('error', (error) => transport.onerror?.(error));
    },
    /** @param {object} message */
    async send(message) {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
    async close() {
      socket.close();
    },
  };
  return transport;
}
