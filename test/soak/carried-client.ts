import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import { initialize, notification } from '../support/legacy-clients.ts';
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

/** A session on a connection of its own: over WebSocket, or as lines on a byte stream. */
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
    this.#carried = url.protocol === 'ws:' ? openWebSocket(url, hear) : openByteStream(url, hear);
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
