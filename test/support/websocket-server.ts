import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions as TlsOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Server as McpServer } from '@modelcontextprotocol/sdk/server/index.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type RawData, type ServerOptions, WebSocket, WebSocketServer } from 'ws';
import { createContractServer } from '../fixtures/contract-server/server.js';

/** A transport of the SDK over a connection of `ws`: nothing of it is ours. */
export function transportOver(socket: WebSocket) {
  const transport = {
    onmessage: undefined as ((message: JSONRPCMessage) => void) | undefined,
    onclose: undefined as (() => void) | undefined,
    onerror: undefined as ((error: Error) => void) | undefined,
    async start() {
      socket.on('message', (data: RawData) => transport.onmessage?.(JSON.parse(data.toString()) as JSONRPCMessage));
      socket.on('close', () => transport.onclose?.());
      socket.on('error', (error) => transport.onerror?.(error));
    },
    async send(message: JSONRPCMessage) {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
    async close() {
      socket.close();
    },
  };
  return transport;
}

export interface WebSocketServerOptions extends Pick<ServerOptions, 'handleProtocols'> {
  readonly createServer?: () => McpServer;
  /** Over wss; default: ws. */
  readonly tls?: Pick<TlsOptions, 'cert' | 'key' | 'ca' | 'requestCert' | 'rejectUnauthorized'>;
  /** What becomes of a connection instead of a server on it. */
  readonly connected?: (socket: WebSocket, request: IncomingMessage) => void;
  /** Answers over HTTP what the handshake is to be refused with; undefined: it goes on. */
  readonly refuse?: (
    request: IncomingMessage,
  ) => { status: number; headers?: Record<string, string>; body?: string } | undefined;
}

export interface RunningWebSocketServer {
  readonly url: URL;
  /** Handshakes, those that were refused included. */
  readonly asked: readonly IncomingMessage[];
  /** Connections that are open now. */
  readonly open: ReadonlySet<WebSocket>;
  /** How connections ended, as the server was told. */
  readonly ends: readonly { readonly code: number; readonly reason: string }[];
  /** Cuts every connection without a word. */
  cut(): void;
  stop(): Promise<void>;
}

/** A WebSocket server made of `ws` and the SDK. */
export async function startWebSocketServer(options: WebSocketServerOptions = {}): Promise<RunningWebSocketServer> {
  const { createServer: createMcpServer = createContractServer, connected, refuse, handleProtocols, tls } = options;
  const asked: IncomingMessage[] = [];
  const ends: { code: number; reason: string }[] = [];
  const answer = (_request: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(404).end('no WebSocket');
  const http: Server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  const server = new WebSocketServer({ noServer: true, ...(handleProtocols && { handleProtocols }) });
  http.on('upgrade', (request, socket, head) => {
    asked.push(request);
    const refusal = refuse?.(request);
    if (refusal === undefined) {
      return server.handleUpgrade(request, socket, head, (opened) => server.emit('connection', opened, request));
    }
    const { status, headers = {}, body = '' } = refusal;
    const lines = Object.entries({ 'Content-Length': `${Buffer.byteLength(body)}`, Connection: 'close', ...headers });
    const head_ = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    socket.end(`HTTP/1.1 ${status} Refused\r\n${head_}\r\n${body}`);
  });
  server.on('connection', (socket: WebSocket, request: IncomingMessage) => {
    socket.on('close', (code, reason) => ends.push({ code, reason: reason.toString() }));
    if (connected !== undefined) return connected(socket, request);
    void createMcpServer().connect(transportOver(socket) as never);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const cut = (): void => {
    for (const socket of server.clients) socket.terminate();
  };
  return {
    url: new URL(tls === undefined ? `ws://127.0.0.1:${port}/mcp` : `wss://127.0.0.1:${port}/mcp`),
    asked,
    open: server.clients,
    ends,
    cut,
    stop: async () => {
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      cut();
      http.closeAllConnections();
      await closed;
    },
  };
}
