import type { IncomingMessage } from 'node:http';
import type { WebSocket, WebSocketServer } from 'ws';
import { BridgeError } from '../../errors.ts';
import { LIBRARY_OPTIONS, maxPayloadOf, SUBPROTOCOL } from '../websocket/connection.ts';
import type { Upgrade } from './upgrades.ts';

/** [RFC 6455 4.1] 16 bytes in base64 */
const KEY = /^[A-Za-z0-9+/]{22}==$/;
const VERSION = '13';

/**
 * Returns why a request cannot be answered with a WebSocket, and headers for the error response; undefined if it can.
 */
export function findHandshakeFault(request: IncomingMessage, upgrade: Upgrade | undefined): HandshakeFault | undefined {
  const { headers } = request;
  if (upgrade === undefined) {
    const message = 'WebSocket is spoken here: connect with a WebSocket client, and the subprotocol "mcp".';
    return { error: new BridgeError('ERR_HTTP_UPGRADE', message), headers: { Upgrade: 'websocket' } };
  }
  if (headers['sec-websocket-version'] !== VERSION) {
    const message = `The header Sec-WebSocket-Version must be ${VERSION}.`;
    return { error: new BridgeError('ERR_HTTP_UPGRADE', message), headers: { 'Sec-WebSocket-Version': VERSION } };
  }
  if (KEY.test(headers['sec-websocket-key'] ?? '')) return undefined;
  const message = 'The header Sec-WebSocket-Key must hold 16 bytes in base64, once.';
  return { error: new BridgeError('ERR_HTTP_HEADER', message), headers: {} };
}

export interface HandshakeFault {
  readonly error: BridgeError;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Completes handshakes and selects the MCP subprotocol if the client offers it. Clients that offer no subprotocol get
 * none: those of the official SDKs offer it and require it, but most plain WebSocket clients do not know it.
 */
export class WebSocketAcceptor {
  readonly #server: WebSocketServer;

  private constructor(server: WebSocketServer) {
    this.#server = server;
  }

  /** Loads the library, when the first connection arrives. */
  static async load(maxMessageBytes: number): Promise<WebSocketAcceptor> {
    const { WebSocketServer } = await import('ws');
    const server = new WebSocketServer({
      ...LIBRARY_OPTIONS,
      noServer: true,
      clientTracking: false,
      maxPayload: maxPayloadOf(maxMessageBytes),
      handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    });
    return new WebSocketAcceptor(server);
  }

  /**
   * Accepts a request without a fault. Calls `opened` synchronously, unless the subprotocol header is malformed; the
   * library then rejects the request.
   */
  accept(request: IncomingMessage, { socket, head }: Upgrade, opened: (webSocket: WebSocket) => void): void {
    this.#server.handleUpgrade(request, socket, head, opened);
  }
}
