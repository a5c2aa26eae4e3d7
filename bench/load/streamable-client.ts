/** A client of Streamable HTTP: with a session, or of the modern era, which has none. A connection for each lane. */
import { Call, encodeRequest } from './call.ts';
import {
  type Client,
  type ControlAnswer,
  type Identity,
  INITIALIZE,
  INITIALIZED,
  type Lane,
  REVISION,
} from './client.ts';
import { HttpConnection, type Place } from './http-connection.ts';
import type { Numbers } from './numbers.ts';
import type { Era, Workload } from './workload.ts';

export interface StreamableTarget {
  readonly place: Place;
  readonly path: string;
}

export async function openStreamableClient(target: StreamableTarget, identity: Identity): Promise<Client> {
  const client = new StreamableClient(target, identity);
  try {
    if (identity.era === 'legacy') await client.initialize();
  } catch (error) {
    client.closeConnection();
    throw error;
  }
  return client;
}

class StreamableClient implements Client {
  readonly name: string;
  readonly numbers: Numbers;
  readonly #target: StreamableTarget;
  readonly #era: Era;
  readonly #answersIn: Era;
  #session: string | undefined;
  #control: Promise<HttpConnection> | undefined;
  #requests = 1;

  constructor(target: StreamableTarget, { name, era, answersIn, numbers }: Identity) {
    this.name = name;
    this.numbers = numbers;
    this.#target = target;
    this.#era = era;
    this.#answersIn = answersIn;
  }

  async initialize(): Promise<void> {
    const { answer, head } = await this.#post(INITIALIZE);
    if (answer?.result === undefined) throw new Error(`initialize was answered ${JSON.stringify(answer)}`);
    this.#session = /^mcp-session-id: *(\S+)/im.exec(head)?.[1];
    await this.#post(INITIALIZED);
  }

  async request(method: string): Promise<ControlAnswer> {
    this.#requests += 1;
    const id = this.#requests;
    const { answer, head } = await this.#post(encodeRequest(id, method, this.#era), method);
    if (answer === undefined) throw new Error(`${method} was answered ${head.split('\r\n')[0]}`);
    return answer;
  }

  async openLane(workload: Workload): Promise<Lane> {
    const connection = await HttpConnection.open(this.#target.place);
    const call = new Call({
      workload,
      client: this.name,
      era: this.#era,
      answersIn: this.#answersIn,
      head: (bytes) => this.#encodeHead('POST', bytes, 'tools/call', workload.tool),
      tail: '',
    });
    return new StreamableLane(connection, call);
  }

  async close(): Promise<void> {
    if (this.#session !== undefined) {
      const connection = await this.#connect();
      await exchange(connection, this.#encodeHead('DELETE', 0));
    }
    this.closeConnection();
  }

  closeConnection(): void {
    this.#control?.then(
      (connection) => connection.close(),
      () => undefined,
    );
    this.#control = undefined;
  }

  async #post(body: string, method?: string): Promise<{ answer: ControlAnswer | undefined; head: string }> {
    const connection = await this.#connect();
    return exchange(connection, `${this.#encodeHead('POST', Buffer.byteLength(body), method)}${body}`);
  }

  /** One connection for what is not measured; another where the bridge has closed it for being idle. */
  async #connect(): Promise<HttpConnection> {
    this.#control ??= HttpConnection.open(this.#target.place);
    const connection = await this.#control;
    if (!connection.isClosed) return connection;
    this.#control = HttpConnection.open(this.#target.place);
    return this.#control;
  }

  #encodeHead(verb: string, bodyBytes: number, method?: string, name?: string): string {
    const lines = [
      `${verb} ${this.#target.path} HTTP/1.1`,
      `Host: ${typeof this.#target.place === 'string' ? 'localhost' : `127.0.0.1:${this.#target.place}`}`,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      `Content-Length: ${bodyBytes}`,
    ];
    if (this.#era === 'modern') {
      lines.push('MCP-Protocol-Version: 2026-07-28');
      if (method !== undefined) lines.push(`Mcp-Method: ${method}`);
      if (name !== undefined) lines.push(`Mcp-Name: ${name}`);
    } else if (this.#session !== undefined) {
      lines.push(`Mcp-Session-Id: ${this.#session}`, `MCP-Protocol-Version: ${REVISION}`);
    }
    return `${lines.join('\r\n')}\r\n\r\n`;
  }
}

class StreamableLane implements Lane {
  readonly call: Call;
  readonly #connection: HttpConnection;

  constructor(connection: HttpConnection, call: Call) {
    this.#connection = connection;
    this.call = call;
  }

  run(onDone: () => void, onFailure: (error: Error) => void): void {
    let isAnswered = false;
    let status = 0;
    this.#connection.send(this.call.bytes, {
      onHead: (code) => {
        status = code;
      },
      onMessage: (message) => {
        // What a peer says beside it may name folders of this machine.
        if (status !== 200) throw new Error(`HTTP ${status}`);
        if (isAnswered) throw new Error('a message after the answer');
        isAnswered = this.call.accept(message);
      },
      onEnd: () => (isAnswered ? onDone() : onFailure(new Error(`HTTP ${status} without an answer`))),
      onFailure,
    });
  }

  close(): void {
    this.#connection.close();
  }
}

function exchange(
  connection: HttpConnection,
  request: string,
): Promise<{ answer: ControlAnswer | undefined; head: string }> {
  return new Promise((resolve, reject) => {
    let answer: ControlAnswer | undefined;
    let head = '';
    connection.send(request, {
      onHead: (_, text) => {
        head = text;
      },
      onMessage: (message) => {
        answer = parseAnswer(message) ?? answer;
      },
      onEnd: () => resolve({ answer, head }),
      onFailure: reject,
    });
  });
}

/** Undefined for what is no answer: a notification, or an error page. */
function parseAnswer(message: Buffer): ControlAnswer | undefined {
  try {
    const parsed = JSON.parse(message.toString());
    return parsed.method === undefined ? parsed : undefined;
  } catch {
    return undefined;
  }
}
