import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import type { ExecutionContext } from 'ava';
import { type WebSocket, WebSocketServer } from 'ws';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { framedLine, onLine } from '../support/grpc-lines.ts';
import { type MosquittoOptions, PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { LATER, startTestServer, type TestSession } from '../support/mqtt-peers.ts';
import { type Faulty, startFaulty } from './faulty-bridge.ts';

/** One call, and the connection that its answer travels on. */
export interface ConnectionCall {
  readonly id: unknown;
  readonly text: string;
  /** An object as a message, a text in the place of one. */
  say(message: object | string): void;
  /** Leaves unread what comes on the connection from now on. */
  readNoMore(): void;
  /** What carries what is said, for what is no message. */
  readonly carrier: Duplex;
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
function answerTo(text: string, server: ConnectionServer, connection: Omit<ConnectionCall, 'id' | 'text'>): void {
  const { id, method, params } = JSON.parse(text) as Asked;
  if (id === undefined || method === undefined) return;
  if (method === 'tools/call') return server.answer({ ...connection, id, text: String(params?.arguments?.text) });
  const serverInfo = { name: 'on a connection', version: '1.0.0' };
  const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  if (method === 'ping') server.pings += 1;
  connection.say({ jsonrpc: '2.0', id, result: method === 'initialize' ? hello : {} });
}

const asText = (message: object | string): string => (typeof message === 'string' ? message : JSON.stringify(message));

const onDuplex = (carrier: Duplex) => ({ carrier, readNoMore: () => void carrier.pause() });

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
    client.on('message', (data) => answerTo(data.toString(), server, { say, ...onDuplex(socket) }));
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
    lines.on('error', () => undefined).on('line', (line) => answerTo(line, server, { say, ...onDuplex(socket) }));
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

/** On bare HTTP/2, whose streams can be left unread. */
async function startOnGrpc(): Promise<ConnectionServer> {
  const sessions = new Set<ServerHttp2Session>();
  const listener = createHttp2Server({ maxSessionMemory: 1000 });
  listener.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined).on('close', () => sessions.delete(session));
  });
  listener.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    const say = (message: object | string): void => void stream.write(framedLine(asText(message)));
    onLine(stream, (line) => answerTo(line, server, { say, ...onDuplex(stream) }));
    stream.on('end', () => stream.end());
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  const server: ConnectionServer = {
    url: new URL(`grpc://127.0.0.1:${port}`),
    answer: echo,
    pings: 0,
    close: async () => {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
  return server;
}

/** The least that the broker may be told. */
const MIN_KEEP_ALIVE_S = 10;

/** A broker that shows soon that a connection is dead, or alive. */
export const BROKER: MosquittoOptions = {
  settings: [...(PATIENT_BROKER.settings ?? []), `max_keepalive ${MIN_KEEP_ALIVE_S}`],
};

/** At a broker, which is what the bridge has its connection with. */
async function startAtBroker(): Promise<ConnectionServer> {
  const broker = await startMosquitto(BROKER);
  const place = { url: broker.url, serverId: 'faulty-1', serverName: 'faults/server' };
  // Others may have sessions at the same device, so that it has to read on.
  const unread = new Set<TestSession>();
  const device = await startTestServer({
    ...place,
    answer: ({ id, method, params }, session) => {
      if (unread.has(session)) return LATER;
      if (method !== 'tools/call') return {};
      const { text } = (params as { readonly arguments: { readonly text: string } }).arguments;
      const readNoMore = (): void => void unread.add(session);
      const carrier = device.client.stream as Duplex;
      server.answer({ id, text, say: (message) => session.say(message), readNoMore, carrier });
      return LATER;
    },
  });
  const server: ConnectionServer = {
    url: new URL(`${place.url}/${place.serverName}`),
    answer: echo,
    pings: 0,
    close: async () => {
      await device.client.endAsync(true);
      await broker.stop();
    },
  };
  return server;
}

export interface ConnectionKind {
  readonly title: string;
  start(): Promise<ConnectionServer>;
}

export const CONNECTIONS = {
  webSocket: { title: 'WebSocket', start: startOnWebSocket },
  stream: { title: 'byte stream', start: startOnByteStream },
  grpc: { title: 'gRPC', start: startOnGrpc },
  mqtt: { title: 'MQTT', start: startAtBroker },
} as const satisfies Record<string, ConnectionKind>;

export type ConnectionName = keyof typeof CONNECTIONS;
const ALL: readonly ConnectionName[] = ['webSocket', 'stream', 'grpc', 'mqtt'];
/** Those that can be tried here. */
export const CONNECTION_NAMES = ALL.filter((name) => name !== 'mqtt' || WHY_NO_MOSQUITTO === undefined);

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
