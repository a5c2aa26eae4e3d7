import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { EventReader } from './event-reader.ts';

export interface HttpCall {
  readonly port: number;
  readonly method?: string;
  readonly path?: string;
  /** `undefined` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer | undefined;
  /** Leaves: cuts the connection, whatever is under way. */
  readonly signal?: AbortSignal;
}

/** A response whose headers have come. */
export class HttpAnswer {
  readonly response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.response = response;
  }

  get status(): number {
    return this.response.statusCode ?? 0;
  }

  get headers(): IncomingHttpHeaders {
    return this.response.headers;
  }

  get isEventStream(): boolean {
    return this.headers['content-type'] === 'text/event-stream';
  }

  text(): Promise<string> {
    return text(this.response);
  }

  async json<Value = Record<string, unknown>>(): Promise<Value> {
    return JSON.parse(await this.text()) as Value;
  }

  events(): EventReader {
    if (!this.isEventStream) throw new Error(`${this.status} ${this.headers['content-type']} is no event stream`);
    return new EventReader(this.response);
  }

  /** Cuts the connection. */
  leave(): void {
    this.response.destroy();
  }
}

/** A connection of its own for each call. */
const agent = new Agent({ keepAlive: false });

/** Resolves when the response's headers are there. */
export function callHttp(call: HttpCall): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const sent = openRequest(call, resolve);
    sent.on('error', reject);
    sent.end(call.body);
  });
}

export interface ArrivingCall {
  /** The server has seen the request's head and is about to deal with it. */
  readonly arrived: Promise<void>;
  readonly answer: Promise<HttpAnswer>;
}

/** The same for tests that must know when the request is there although nothing answers it yet. */
export function callHttpAndArrive(call: HttpCall): ArrivingCall {
  // The server says "100 Continue" as soon as it has the head.
  const headers = { ...call.headers, Expect: '100-continue' };
  let sent: ClientRequest | undefined;
  const answer = new Promise<HttpAnswer>((resolve, reject) => {
    sent = openRequest({ ...call, headers }, resolve);
    sent.on('error', reject);
    sent.flushHeaders();
  });
  const arrived = new Promise<void>((resolve) => {
    sent?.once('continue', () => {
      sent?.end(call.body);
      setImmediate(resolve);
    });
  });
  return { arrived, answer };
}

function openRequest(call: HttpCall, answered: (answer: HttpAnswer) => void): ClientRequest {
  const { port, method = 'GET', path = '/mcp', headers = {}, signal } = call;
  const present = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
  const options = { host: '127.0.0.1', port, method, path, agent, headers: Object.fromEntries(present) };
  return request({ ...options, ...(signal === undefined ? {} : { signal }) }, (response) => {
    response.on('error', () => undefined);
    answered(new HttpAnswer(response));
  });
}
