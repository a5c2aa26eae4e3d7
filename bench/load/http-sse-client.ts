/** A client of HTTP+SSE: one stream for all messages of the server, and connections to post on. */
import { Call, encodeRequest } from './call.ts';
import { type Client, type ControlAnswer, type Identity, INITIALIZE, INITIALIZED, type Lane } from './client.ts';
import { HttpConnection } from './http-connection.ts';
import { Mailbox } from './mailbox.ts';
import type { Numbers } from './numbers.ts';

import type { Workload } from './workload.ts';

export interface HttpSseTarget {
  readonly port: number;
  readonly path: string;
}

export async function openHttpSseClient(target: HttpSseTarget, identity: Identity): Promise<Client> {
  const stream = await HttpConnection.open(target.port);
  const mailbox = new Mailbox();
  const messagePath = await new Promise<string>((resolve, reject) => {
    const fail = (error: Error): void => {
      reject(error);
      mailbox.fail(error);
    };
    const head = `GET ${target.path} HTTP/1.1\r\nHost: 127.0.0.1:${target.port}\r\nAccept: text/event-stream\r\n\r\n`;
    stream.send(head, {
      onMessage: (data, type) => {
        if (type !== 'endpoint') return mailbox.deliver(data);
        const url = new URL(data.toString(), `http://127.0.0.1:${target.port}`);
        resolve(url.pathname + url.search);
      },
      onEnd: () => fail(new Error('the stream ended')),
      onFailure: fail,
    });
  });
  const client = new HttpSseClient({ identity, port: target.port, stream, mailbox, messagePath });
  await client.initialize();
  return client;
}

interface Opened {
  readonly identity: Identity;
  readonly port: number;
  readonly stream: HttpConnection;
  readonly mailbox: Mailbox;
  readonly messagePath: string;
}

class HttpSseClient implements Client {
  readonly name: string;
  readonly numbers: Numbers;
  readonly #opened: Opened;
  #requests = 1;

  constructor(opened: Opened) {
    this.name = opened.identity.name;
    this.numbers = opened.identity.numbers;
    this.#opened = opened;
  }

  async initialize(): Promise<void> {
    const answered = this.#opened.mailbox.answerTo(1);
    await Promise.all([answered, this.#post(INITIALIZE)]);
    await this.#post(INITIALIZED);
  }

  async request(method: string): Promise<ControlAnswer> {
    this.#requests += 1;
    const id = this.#requests;
    const answered = this.#opened.mailbox.answerTo(id);
    await this.#post(encodeRequest(id, method, 'legacy'));
    return answered;
  }

  async openLane(workload: Workload): Promise<Lane> {
    const connection = await HttpConnection.open(this.#opened.port);
    const head = (bytes: number) => this.#encodeHead(bytes);
    const call = new Call({ workload, client: this.name, era: 'legacy', answersIn: 'legacy', head, tail: '' });
    return new HttpSseLane(connection, call, this.#opened.mailbox);
  }

  async close(): Promise<void> {
    this.#opened.stream.close();
  }

  async #post(body: string): Promise<void> {
    const connection = await HttpConnection.open(this.#opened.port);
    await new Promise<void>((resolve, reject) => {
      connection.send(`${this.#encodeHead(Buffer.byteLength(body))}${body}`, {
        onMessage: () => undefined,
        onEnd: resolve,
        onFailure: reject,
      });
    });
    connection.close();
  }

  #encodeHead(bodyBytes: number): string {
    const { messagePath, port } = this.#opened;
    return (
      `POST ${messagePath} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n\r\n`
    );
  }
}

class HttpSseLane implements Lane {
  readonly call: Call;
  readonly #connection: HttpConnection;
  readonly #mailbox: Mailbox;

  constructor(connection: HttpConnection, call: Call, mailbox: Mailbox) {
    this.#connection = connection;
    this.call = call;
    this.#mailbox = mailbox;
  }

  run(onDone: () => void, onFailure: (error: Error) => void): void {
    // The answer and the acknowledgment of the post come in either order.
    let missing = 2;
    let status = 0;
    const arrive = (): void => {
      missing -= 1;
      if (missing === 0) onDone();
    };
    this.#mailbox.expect(this.call.number, {
      accept: (message) => {
        if (!this.call.accept(message)) return;
        this.#mailbox.settle(this.call.number);
        arrive();
      },
      fail: onFailure,
    });
    this.#connection.send(this.call.bytes, {
      onHead: (code) => {
        status = code;
      },
      onMessage: () => undefined,
      onEnd: () => (status < 300 ? arrive() : onFailure(new Error(`HTTP ${status} for a post`))),
      onFailure,
    });
  }

  close(): void {
    this.#connection.close();
  }
}
