import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
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
export function callHttp({
  port,
  method = 'GET',
  path = '/mcp',
  headers = {},
  body,
  signal,
}: HttpCall): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const present = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
    const options = { host: '127.0.0.1', port, method, path, agent, headers: Object.fromEntries(present) };
    const sent = request({ ...options, ...(signal === undefined ? {} : { signal }) }, (response) => {
      response.on('error', () => undefined);
      resolve(new HttpAnswer(response));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
