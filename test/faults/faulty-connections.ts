import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { ExecutionContext } from 'ava';
import { type WebSocket, WebSocketServer } from 'ws';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { type Faulty, startFaulty } from './faulty-bridge.ts';

/** One call, and the connection that its answer travels on. */
export interface ConnectionCall {
  readonly id: unknown;
  readonly text: string;
  /** An object as a message, a text in the place of one. */
  say(message: object | string): void;
  /** What carries the connection, for what is no message. */
  readonly socket: Socket;
}

/** A server on connections that both ends keep. */
export interface ConnectionServer {
  readonly url: URL;
  answer: (call: ConnectionCall) => void;
  /** Requests `ping` that it has answered. */
  pings: number;
  close(): Promise<void>;
}

export const resultOf = (id: unknown, text: string): object => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text }] },
});

export const echo = ({ id, text, say }: ConnectionCall): void => say(resultOf(id, text));

interface Asked {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly arguments?: { readonly text?: string } };
}

/** What a server of the legacy era says to a message, but for calls. */
function answerTo(text: string, server: ConnectionServer, connection: Pick<ConnectionCall, 'say' | 'socket'>): void {
  const { id, method, params } = JSON.parse(text) as Asked;
  if (id === undefined || method === undefined) return;
  if (method === 'tools/call') return server.answer({ ...connection, id, text: String(params?.arguments?.text) });
  const serverInfo = { name: 'on a connection', version: '1.0.0' };
  const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  if (method === 'ping') server.pings += 1;
  connection.say({ jsonrpc: '2.0', id, result: method === 'initialize' ? hello : {} });
}

const asText = (message: object | string): string => (typeof message === 'string' ? message : JSON.stringify(message));

async function startOnWebSocket(): Promise<ConnectionServer> {
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  await new Promise<void>((resolve) => sockets.once('listening', resolve));
  const { port } = sockets.address() as AddressInfo;
  const server: ConnectionServer = {
    url: new URL(`ws://127.0.0.1:${port}/mcp`),
    answer: echo,
    pings: 0,
    close: async () => {
      for (const client of sockets.clients) client.terminate();
      await new Promise<void>((resolve) => sockets.close(() => resolve()));
    },
  };
  sockets.on('connection', (client: WebSocket, { socket }) => {
    client.on('error', () => undefined);
    const say = (message: object | string): void => client.send(asText(message));
    client.on('message', (data) => answerTo(data.toString(), server, { say, socket }));
  });
  return server;
}

async function startOnByteStream(): Promise<ConnectionServer> {
  const open = new Set<Socket>();
  const listener = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    const say = (message: object | string): void => void socket.write(`${asText(message)}\n`);
    const lines = createInterface({ input: socket });
    lines.on('error', () => undefined).on('line', (line) => answerTo(line, server, { say, socket }));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  const server: ConnectionServer = {
    url: new URL(`tcp://127.0.0.1:${port}`),
    answer: echo,
    pings: 0,
    close: async () => {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
  return server;
}

export const CONNECTIONS = {
  webSocket: { title: 'WebSocket', start: startOnWebSocket },
  stream: { title: 'byte stream', start: startOnByteStream },
} as const;

export type ConnectionName = keyof typeof CONNECTIONS;
export const CONNECTION_NAMES: readonly ConnectionName[] = ['webSocket', 'stream'];

export interface Connected extends Faulty {
  readonly server: ConnectionServer;
  readonly network: FaultProxy;
}

/** The bridge before a server on connections that echoes, with a network in between. */
export async function startConnected(
  t: ExecutionContext,
  name: ConnectionName,
  options: readonly string[] = [],
): Promise<Connected> {
  const server = await CONNECTIONS[name].start();
  const network = await startFaultProxy(server.url);
  t.teardown(async () => {
    await network.close();
    await server.close();
  });
  return { server, network, ...(await startFaulty(t, { options, target: [network.through(server.url).href] })) };
}
