import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import { SESSION_HEADERS } from '../downstream/grpc/raw-call.ts';
import { framedLine, onLine } from '../support/grpc-lines.ts';
import { initialize, notification } from '../support/legacy-clients.ts';
import { MqttClientTransport } from '../support/mqtt-client-transport.ts';
import { AnswerDesk } from './answer-desk.ts';
import { checkAnswer, echo, type Resident, uniqueText } from './client.ts';
import type { Tally } from './tally.ts';

/** A connection that both ends keep, as far as its client is concerned. */
interface Carried {
  send(text: string): void;
  close(): void;
  /** Resolves when nothing is left of it. */
  readonly closed: Promise<unknown>;
}

type Open = (url: URL, hear: (text: string) => void) => Carried;

const OPEN: Readonly<Record<string, Open>> = {
  'ws:': openWebSocket,
  'tcp:': openByteStream,
  'grpc:': openGrpc,
  'mqtt:': openAtBroker,
};

/** A session on a connection of its own: over WebSocket, as lines on a byte stream, over gRPC, or at a broker. */
export class SoakCarried implements Resident {
  readonly #tally: Tally;
  readonly #desk: AnswerDesk;
  readonly #carried: Carried;
  /** All sessions count alike, so that their ids collide. */
  #id = 0;

  private constructor(url: URL, tally: Tally) {
    this.#tally = tally;
    this.#desk = new AnswerDesk(tally);
    const hear = (text: string): void => this.#desk.take(JSON.parse(text), text);
    const open = OPEN[url.protocol];
    if (open === undefined) throw new Error(`nothing is known that speaks ${url.protocol}`);
    this.#carried = open(url, hear);
    void this.#carried.closed.then(() => this.#desk.close());
  }

  /** Undefined: the bridge refused; counted as lost. */
  static async open(url: URL, tally: Tally): Promise<SoakCarried | undefined> {
    const session = new SoakCarried(url, tally);
    try {
      await session.#ask(0, initialize());
      session.#carried.send(JSON.stringify(notification('notifications/initialized')));
      tally.sessions += 1;
      return session;
    } catch (error) {
      tally.fail('lost', `${url.protocol} ${error}`);
      return undefined;
    }
  }

  #ask(id: number, message: object): Promise<string> {
    const answer = this.#desk.answerTo(id);
    this.#carried.send(JSON.stringify(message));
    return answer;
  }

  async call(): Promise<void> {
    const text = uniqueText('connection');
    const id = ++this.#id;
    await checkAnswer({ tally: this.#tally, id, text }, async () => ({
      status: 200,
      text: await this.#ask(id, echo(id, text)),
    }));
  }

  async close(): Promise<void> {
    this.#carried.close();
    await this.#carried.closed;
  }
}

function openWebSocket(url: URL, hear: (text: string) => void): Carried {
  const socket = new WebSocket(url, 'mcp', { perMessageDeflate: false });
  const opened = once(socket, 'open').catch(() => undefined);
  socket.on('error', () => undefined).on('message', (data) => hear(data.toString()));
  return {
    send: (text) => void opened.then(() => socket.send(text, () => undefined)),
    close: () => socket.close(),
    closed: once(socket, 'close').catch(() => undefined),
  };
}

function openByteStream(url: URL, hear: (text: string) => void): Carried {
  const socket = connect(Number(url.port), url.hostname);
  socket.on('error', () => undefined);
  const lines = createInterface({ input: socket });
  lines.on('error', () => undefined).on('line', hear);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  return { send: (text) => void socket.write(`${text}\n`), close: () => void socket.end(), closed };
}

function openGrpc({ hostname, port }: URL, hear: (text: string) => void): Carried {
  const session = connectHttp2(`http://${hostname}:${port}`);
  session.on('error', () => undefined);
  const stream = session.request(SESSION_HEADERS);
  onLine(stream, hear);
  stream.on('error', () => undefined).on('close', () => session.close());
  const closed = new Promise((resolve) => session.once('close', resolve));
  return { send: (text) => void stream.write(framedLine(text)), close: () => void stream.end(), closed };
}

function openAtBroker(url: URL, hear: (text: string) => void): Carried {
  const transport = new MqttClientTransport(url);
  transport.onmessage = (message) => hear(JSON.stringify(message));
  const closed = new Promise<void>((resolve) => {
    transport.onclose = resolve;
  });
  const opened = transport.start().catch(() => transport.onclose?.());
  return {
    send: (text) => void opened.then(() => transport.send(JSON.parse(text))).catch(() => undefined),
    close: () => void transport.close(),
    closed,
  };
}
