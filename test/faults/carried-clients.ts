import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Bridge } from '../support/bridge.ts';
import { initialize, notification } from '../support/legacy-clients.ts';
import { LineClient, type Message } from '../support/line-client.ts';
import { resetSocket } from '../support/reset-socket.ts';
import { waitFor } from '../support/wait-for.ts';

/** A client on a connection that both ends keep, which knows nothing of MCP but what it is told to say. */
export interface CarriedClient {
  say(message: object): void;
  /** Says the first half of a message. */
  sayHalf(message: object): void;
  /** All that it has been told so far. */
  readonly heard: readonly Message[];
  /** What carries the connection. */
  readonly socket: Socket;
  pause(): void;
  resume(): void;
  reset(): Promise<void>;
  /** Leaves in order. */
  leave(): Promise<void>;
  /** Resolves with how it ended: a close code, or the end of the stream. */
  readonly ended: Promise<string>;
}

export const CARRIERS = {
  webSocket: { title: 'WebSocket', open: openWebSocket },
  stream: { title: 'byte stream', open: openStream },
} as const;

export type CarrierName = keyof typeof CARRIERS;
export const CARRIER_NAMES: readonly CarrierName[] = ['webSocket', 'stream'];

/** Options with which `serve` has all of them. */
export const SERVE_CARRIED = ['--stream', 'tcp://127.0.0.1:0'];

/** Past its handshake. */
export async function openCarried(name: CarrierName, bridge: Bridge): Promise<CarriedClient> {
  const client = await CARRIERS[name].open(bridge);
  client.say(initialize());
  await answerTo(client, 0);
  client.say(notification('notifications/initialized'));
  return client;
}

export async function answerTo({ heard }: CarriedClient, id: unknown): Promise<Message> {
  return waitFor(() => heard.find((message) => message.id === id), { message: `an answer to ${id}` });
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
  const heard: Message[] = [];
  webSocket.on('error', () => undefined);
  webSocket.on('message', (data) => heard.push(JSON.parse(data.toString()) as Message));
  await once(webSocket, 'open');
  if (carrying === undefined) throw new Error('it is carried by nothing');
  const socket = carrying;
  const ended = once(webSocket, 'close').then(([code]) => `${code}`);
  return {
    say: (message) => webSocket.send(JSON.stringify(message)),
    sayHalf: (message) => webSocket.send(firstHalfOf(message), { fin: false }),
    heard,
    socket,
    pause: () => webSocket.pause(),
    resume: () => webSocket.resume(),
    reset: () => resetSocket(socket),
    leave: async () => {
      webSocket.close();
      await ended;
    },
    ended,
  };
}

async function openStream({ logs }: Bridge): Promise<CarriedClient> {
  const url = await waitFor(() => {
    const line = logs.find(({ msg }) => msg?.startsWith('Byte stream') === true);
    return line && new URL((line.endpoint as { url: string }).url);
  });
  const client = await LineClient.connect({ port: Number(url.port) });
  const { socket } = client;
  const heard: Message[] = [];
  const hear = async (): Promise<never> => {
    for (;;) heard.push(await client.nextMessage());
  };
  void hear();
  return {
    say: (message) => client.write(message),
    sayHalf: (message) => client.write(firstHalfOf(message)),
    heard,
    socket,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    reset: () => client.reset(),
    leave: async () => {
      client.end();
      await client.gone;
    },
    ended: client.gone.then(() => 'end'),
  };
}

function firstHalfOf(message: object): string {
  const text = JSON.stringify(message);
  return text.slice(0, text.length / 2);
}
