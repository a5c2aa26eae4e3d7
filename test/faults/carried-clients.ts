import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { generate } from 'mqtt-packet';
import { WebSocket } from 'ws';
import { SESSION_HEADERS } from '../downstream/grpc/raw-call.ts';
import type { Bridge } from '../support/bridge.ts';
import { framedLine, onLine } from '../support/grpc-lines.ts';
import { initialize, notification } from '../support/legacy-clients.ts';
import { LineClient, type Message } from '../support/line-client.ts';
import { PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { MqttClientTransport } from '../support/mqtt-client-transport.ts';
import { resetSocket } from '../support/reset-socket.ts';
import { waitFor } from '../support/wait-for.ts';

/** A client on a connection that both ends keep, which knows nothing of MCP but what it is told to say. */
export interface CarriedClient {
  say(message: object): void;
  /** What a message is on the connection. */
  encode(message: object): Buffer;
  /** Writes a part of that. */
  write(part: Buffer, place: 'inner' | 'last'): void;
  /** Called with all that it is told. Default: it is kept in `heard`. */
  hear: (message: Message) => void;
  readonly heard: readonly Message[];
  /** Bytes that it has said and that have not left it. */
  unsentBytes(): number;
  pause(): void;
  resume(): void;
  reset(): Promise<void>;
  /** Leaves in order. */
  leave(): Promise<void>;
  /** Is gone at once. */
  destroy(): void;
  /** Resolves with how it ended: a close code, a status, or the end of the stream. */
  readonly ended: Promise<string>;
}

/** How clients of one kind reach the bridge. */
export interface Carrying {
  /** Options with which `serve` has them. */
  readonly options: readonly string[];
  open(bridge: Bridge): Promise<CarriedClient>;
}

export interface CarrierKind {
  readonly title: string;
  /** Whether a client is connected with the bridge itself, so that the two can hold each other back. */
  readonly isDirect: boolean;
  /** How it ends when the bridge ends, and when its server has ended. */
  readonly endings: { readonly ofBridge: string; readonly ofServer: string };
  /** What it needs beside the bridge ends with the test. */
  start(t: ExecutionContext): Promise<Carrying>;
}

export const CARRIERS = {
  webSocket: {
    title: 'WebSocket',
    isDirect: true,
    endings: { ofBridge: '1001', ofServer: '1011' },
    start: async () => ({ options: [], open: openWebSocket }),
  },
  stream: {
    title: 'byte stream',
    isDirect: true,
    endings: { ofBridge: 'end', ofServer: 'end' },
    start: async () => ({ options: ['--stream', 'tcp://127.0.0.1:0'], open: openStream }),
  },
  grpc: {
    title: 'stream of gRPC',
    isDirect: true,
    endings: { ofBridge: 'status 14', ofServer: 'status 14' },
    start: async () => ({ options: ['--grpc', '127.0.0.1:0'], open: openGrpc }),
  },
  mqtt: {
    title: 'topic of MQTT',
    isDirect: false,
    endings: { ofBridge: 'end', ofServer: 'end' },
    start: startBroker,
  },
} as const satisfies Record<string, CarrierKind>;

export type CarrierName = keyof typeof CARRIERS;
const ALL: readonly CarrierName[] = ['webSocket', 'stream', 'grpc', 'mqtt'];
/** Those that can be tried here. */
export const CARRIER_NAMES = ALL.filter((name) => name !== 'mqtt' || WHY_NO_MOSQUITTO === undefined);

/** Past its handshake. */
export async function openCarried({ open }: Carrying, bridge: Bridge): Promise<CarriedClient> {
  const client = await open(bridge);
  client.say(initialize());
  await answerTo(client, 0);
  client.say(notification('notifications/initialized'));
  return client;
}

export async function answerTo({ heard }: CarriedClient, id: unknown): Promise<Message> {
  return waitFor(() => heard.find((message) => message.id === id), { message: `an answer to ${id}` });
}

/** Says the first half of a message, and nothing after it. */
export function sayHalf(client: CarriedClient, message: object): void {
  const whole = client.encode(message);
  client.write(whole.subarray(0, whole.length / 2), 'inner');
}

/** Keeps what is heard until somebody else wants it. */
function createEar() {
  const heard: Message[] = [];
  const ear = {
    heard,
    hear: (message: Message): void => void heard.push(message),
    take: (text: string): void => ear.hear(JSON.parse(text) as Message),
  };
  return ear;
}

async function openWebSocket({ url }: Bridge): Promise<CarriedClient> {
  let carrying: Socket | undefined;
  const webSocket = new WebSocket(`ws://${url.host}/ws`, 'mcp', {
    perMessageDeflate: false,
    createConnection: () => {
      carrying = connect(Number(url.port), url.hostname);
      return carrying;
    },
  });
  const ear = createEar();
  webSocket.on('error', () => undefined);
  webSocket.on('message', (data) => ear.take(data.toString()));
  await once(webSocket, 'open');
  if (carrying === undefined) throw new Error('it is carried by nothing');
  const socket = carrying;
  const ended = once(webSocket, 'close').then(([code]) => `${code}`);
  return Object.assign(ear, {
    ...onSocket(socket),
    say: (message: object) => webSocket.send(JSON.stringify(message)),
    encode: (message: object) => Buffer.from(JSON.stringify(message)),
    write: (part: Buffer, place: 'inner' | 'last') => webSocket.send(part, { fin: place === 'last', binary: false }),
    pause: () => webSocket.pause(),
    resume: () => webSocket.resume(),
    leave: async () => {
      webSocket.close();
      await ended;
    },
    ended,
  });
}

async function openStream(bridge: Bridge): Promise<CarriedClient> {
  const client = await LineClient.connect({ port: Number((await placeOf(bridge, 'Byte stream')).port) });
  const { socket } = client;
  const ear = createEar();
  const hear = async (): Promise<never> => {
    for (;;) ear.take(await client.next());
  };
  void hear();
  return Object.assign(ear, {
    ...onSocket(socket),
    say: (message: object) => client.write(message),
    encode: (message: object) => Buffer.from(`${JSON.stringify(message)}\n`),
    write: (part: Buffer) => void socket.write(part),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    leave: async () => {
      client.end();
      await client.gone;
    },
    ended: client.gone.then(() => 'end'),
  });
}

/** By default Node takes no headers anymore, not even those of an end, once a few messages wait to be sent. */
const MUCH_MB = 1000;

/** A stream on a connection of its own. */
async function openGrpc(bridge: Bridge): Promise<CarriedClient> {
  const connection = await connectGrpc(bridge);
  const client = connection.open();
  void client.ended.then(() => connection.session.close());
  return client;
}

/** A connection for several streams. */
export async function connectGrpc(bridge: Bridge) {
  const { hostname, port } = await placeOf(bridge, 'gRPC');
  const socket = connect(Number(port), hostname);
  const session = connectHttp2(`http://${hostname}:${port}`, {
    createConnection: () => socket,
    maxSessionMemory: MUCH_MB,
  });
  session.on('error', () => undefined);
  return { socket, session, open: () => openStreamOn(session, socket) };
}

function openStreamOn(session: ClientHttp2Session, socket: Socket): CarriedClient {
  const stream = session.request(SESSION_HEADERS);
  const ear = createEar();
  onLine(stream, ear.take);
  let status: unknown;
  stream.on('error', () => undefined);
  stream.on('trailers', (trailers) => {
    status = trailers['grpc-status'];
  });
  stream.on('end', () => stream.end());
  const ended = new Promise<string>((resolve) => {
    stream.once('close', () => resolve(status === undefined ? `reset ${stream.rstCode}` : `status ${status}`));
  });
  return Object.assign(ear, {
    ...onSocket(socket),
    unsentBytes: () => stream.writableLength,
    say: (message: object) => void stream.write(framedLine(JSON.stringify(message))),
    encode: (message: object) => framedLine(JSON.stringify(message)),
    write: (part: Buffer) => void stream.write(part),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    leave: async () => {
      stream.end();
      await ended;
    },
    ended,
  });
}

const SERVER_NAME = 'faults/server';

/** A broker of a test's own, which keeps all that a client does not read. */
async function startBroker(t: ExecutionContext): Promise<Carrying> {
  const broker = await startMosquitto(PATIENT_BROKER);
  t.teardown(broker.stop);
  const url = `${broker.url}/${SERVER_NAME}`;
  return { options: ['--dial', url], open: () => openAtBroker(new URL(url)) };
}

/** At a broker, where nothing of its connection is seen by the bridge. */
export async function openAtBroker(url: URL): Promise<CarriedClient> {
  const transport = new MqttClientTransport(url);
  await transport.start();
  const ear = createEar();
  transport.onmessage = (message) => ear.hear(message as Message);
  const ended = new Promise<string>((resolve) => {
    transport.onclose = () => resolve('end');
  });
  const { socket } = transport;
  return Object.assign(ear, {
    ...onSocket(socket),
    say: (message: object) => void transport.send(message).catch(() => undefined),
    encode: (message: object) => {
      const payload = JSON.stringify(message);
      const { rpcTopic: topic } = transport;
      return generate({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: false }, { protocolVersion: 5 });
    },
    write: (part: Buffer) => void socket.write(part),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    leave: () => transport.close(),
    ended,
  });
}

function onSocket(socket: Socket) {
  return {
    unsentBytes: () => socket.writableLength,
    reset: () => resetSocket(socket),
    destroy: () => void socket.destroy(),
  };
}

/** Where `serve` says that it listens for this. */
function placeOf({ logs }: Bridge, label: string): Promise<URL> {
  return waitFor(() => {
    const line = logs.find(({ msg }) => msg?.startsWith(label) === true);
    return line && new URL((line.endpoint as { url: string }).url);
  });
}
