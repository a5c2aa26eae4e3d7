import { Agent, type IncomingMessage, request } from 'node:http';
import { headersOf, modernCall } from '../downstream/streamable-stateless/modern-posts.ts';
import { call, initialize, notification, POST_HEADERS } from '../support/legacy-clients.ts';
import type { Tally } from './tally.ts';

/** A call that takes longer is lost. */
export const ANSWER_MS = 60_000;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** Connections that all clients of one bridge share, as behind a reverse proxy. */
export class Connections {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  readonly url: URL;

  constructor(url: URL) {
    this.url = url;
  }

  post(body: object, headers: Readonly<Record<string, string | undefined>>, url = this.url): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(url, { method: 'POST', agent: this.#agent, headers: present(headers) }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
        response.on('error', reject);
      });
      sent.setTimeout(ANSWER_MS, () => sent.destroy(new Error(`no answer within ${ANSWER_MS} ms`)));
      sent.on('error', reject);
      sent.end(JSON.stringify(body));
    });
  }

  /** Asks on a connection of its own and is gone before the answer. */
  abandon(body: object, headers: Readonly<Record<string, string>>): Promise<void> {
    return new Promise((resolve) => {
      const sent = request(this.url, { method: 'POST', agent: false, headers });
      sent.on('error', () => undefined).on('close', resolve);
      sent.on('socket', (socket) => socket.once('connect', () => setImmediate(() => sent.destroy())));
      sent.end(JSON.stringify(body));
    });
  }

  /** An event stream that stays open until it is left. */
  stream(headers: Readonly<Record<string, string>>): () => void {
    const sent = request(this.url, { method: 'GET', agent: false, headers }, (response) => {
      response.on('error', () => undefined).resume();
    });
    sent.on('error', () => undefined).end();
    return () => void sent.destroy();
  }

  async delete(headers: Readonly<Record<string, string>>): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const sent = request(this.url, { method: 'DELETE', agent: this.#agent, headers }, (response) => {
        response.resume().on('end', resolve);
      });
      sent.on('error', reject).end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function present(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}

let texts = 0;

/** A text that nobody else has said or will say. */
export function uniqueText(who: string): string {
  texts += 1;
  return `${who}/${texts}`;
}

/** Somebody who stays and calls. */
export interface Resident {
  call(): Promise<void>;
  close(): Promise<void>;
}

/** A legacy session over Streamable HTTP. */
export class SoakSession implements Resident {
  readonly #connections: Connections;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #tally: Tally;
  readonly #name: string;
  #leaveStream: (() => void) | undefined;
  /** All sessions count alike, so that their ids collide. */
  #id = 0;

  private constructor(connections: Connections, sessionId: string, tally: Tally) {
    this.#connections = connections;
    this.#headers = { ...POST_HEADERS, 'Mcp-Session-Id': sessionId, 'MCP-Protocol-Version': '2025-11-25' };
    this.#tally = tally;
    this.#name = sessionId.slice(0, 8);
  }

  /** Undefined: the bridge refused; counted as lost. */
  static async open(connections: Connections, tally: Tally): Promise<SoakSession | undefined> {
    try {
      const answer = await connections.post(initialize(), POST_HEADERS);
      const id = answer.headers['mcp-session-id'];
      if (typeof id !== 'string') throw new Error(`${answer.status} ${answer.text}`);
      const session = new SoakSession(connections, id, tally);
      await connections.post(notification('notifications/initialized'), session.#headers);
      tally.sessions += 1;
      return session;
    } catch (error) {
      tally.fail('lost', `initialize: ${error}`);
      return undefined;
    }
  }

  /** Hears what the server says on its own. */
  listen(): void {
    this.#leaveStream = this.#connections.stream({ ...this.#headers, Accept: 'text/event-stream' });
  }

  async call(): Promise<void> {
    const text = uniqueText(this.#name);
    const id = ++this.#id;
    await checkAnswer({ tally: this.#tally, id, text }, () => this.#connections.post(echo(id, text), this.#headers));
  }

  /** Leaves in the middle of a call, and never comes back. */
  async abandon(): Promise<void> {
    this.#tally.abandoned += 1;
    await this.#connections.abandon(echo(++this.#id, 'nobody waits'), this.#headers);
    this.#leaveStream?.();
  }

  async close(): Promise<void> {
    this.#leaveStream?.();
    await this.#connections.delete(this.#headers);
  }
}

export const echo = (id: number, text: string): object => ({
  ...call(id),
  params: { name: 'echo', arguments: { text } },
});

/** One call of a modern client, which has no session. */
export async function callModern(connections: Connections, tally: Tally): Promise<void> {
  const text = uniqueText('modern');
  const message = modernCall(1, 'echo');
  const asked = { ...message, params: { ...message.params, arguments: { text } } };
  await checkAnswer({ tally, id: 1, text }, () => connections.post(asked, headersOf(message)));
}

interface Expected {
  readonly tally: Tally;
  readonly id: number;
  readonly text: string;
}

/** Asks, and counts what comes of it. */
export async function checkAnswer(
  { tally, id, text }: Expected,
  ask: () => Promise<Pick<Answer, 'status' | 'text'>>,
): Promise<void> {
  tally.asked += 1;
  try {
    const answer = await ask();
    const messages = messagesOf(answer.text);
    const [message] = messages;
    const said = message?.result?.content?.[0]?.text;
    if (messages.length !== 1 || said === undefined) tally.fail('lost', `${text}: ${answer.status} ${answer.text}`);
    else if (message?.id !== id || said !== text) tally.fail('crossed', `${text} got ${answer.text}`);
    else tally.answered += 1;
  } catch (error) {
    tally.fail('lost', `${text}: ${error}`);
  }
}

interface Message {
  readonly id?: number;
  readonly result?: { readonly content?: readonly { readonly text?: string }[] };
}

/** Of a body, or of the events of a stream. */
function messagesOf(text: string): readonly Message[] {
  if (text.startsWith('{')) return [JSON.parse(text)];
  return [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? 'null') as Message);
}
