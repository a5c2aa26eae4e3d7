import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { initialize, JSON_HEADERS, notification } from '../support/legacy-clients.ts';
import { AnswerDesk } from './answer-desk.ts';
import { type Connections, checkAnswer, echo, type Resident, uniqueText } from './client.ts';
import type { Tally } from './tally.ts';

/** A session over HTTP+SSE: posts on shared connections, answers on a stream of its own. */
export class SoakStream implements Resident {
  readonly #connections: Connections;
  readonly #tally: Tally;
  readonly #stream: ClientRequest;
  readonly #desk: AnswerDesk;
  #endpoint: URL | undefined;
  /** All sessions count alike, so that their ids collide. */
  #id = 0;

  private constructor(connections: Connections, url: URL, tally: Tally) {
    this.#connections = connections;
    this.#tally = tally;
    this.#desk = new AnswerDesk(tally);
    const headers = { Accept: 'text/event-stream' };
    this.#stream = request(url, { agent: false, headers }, (response) => this.#read(response));
    this.#stream.on('error', () => this.#desk.close()).end();
  }

  /** Undefined: the bridge refused; counted as lost. */
  static async open(connections: Connections, url: URL, tally: Tally): Promise<SoakStream | undefined> {
    const session = new SoakStream(connections, url, tally);
    try {
      session.#endpoint = new URL(await session.#desk.answerTo('endpoint'), url);
      await session.#ask(0, initialize('2024-11-05'));
      await session.#post(notification('notifications/initialized'));
      tally.sessions += 1;
      return session;
    } catch (error) {
      tally.fail('lost', `HTTP+SSE: ${error}`);
      return undefined;
    }
  }

  #read(response: IncomingMessage): void {
    response.on('error', () => undefined).on('close', () => this.#desk.close());
    const lines = createInterface({ input: response });
    // It passes on those of its input.
    lines.on('error', () => undefined);
    lines.on('line', (line) => {
      if (!line.startsWith('data: ')) return;
      const data = line.slice('data: '.length);
      if (data.startsWith('{')) this.#desk.take(JSON.parse(data), data);
      else this.#desk.take({ id: 'endpoint' }, data);
    });
  }

  async #post(message: object): Promise<number> {
    return (await this.#connections.post(message, JSON_HEADERS, this.#endpoint)).status;
  }

  async #ask(id: number, message: object): Promise<{ readonly status: number; readonly text: string }> {
    const answer = this.#desk.answerTo(id);
    // The answer may come first.
    const [status, text] = await Promise.all([this.#post(message), answer]);
    return { status, text };
  }

  async call(): Promise<void> {
    const text = uniqueText('stream');
    const id = ++this.#id;
    await checkAnswer({ tally: this.#tally, id, text }, () => this.#ask(id, echo(id, text)));
  }

  async close(): Promise<void> {
    this.#stream.destroy();
  }
}
