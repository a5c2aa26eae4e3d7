/**
 * A request and a response in the shape of Node's but without a connection of their own: from the Fetch standard, or
 * forwarded by another replica. The same code serves both kinds. It uses the head of both, the streams with their
 * counters and events, and the request's socket, which here is one that was never connected.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';

export interface DetachedHead {
  readonly method: string;
  readonly url: string;
  /** Names in lower case, each at most once. */
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Socket;
}

export abstract class DetachedRequest extends Readable {
  readonly method: string;
  /** Changed by code that removes a prefix. */
  url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Socket;

  constructor({ method, url, headers, socket }: DetachedHead) {
    super();
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.socket = socket;
  }

  /** All values of each header. */
  abstract get headersDistinct(): Readonly<Record<string, readonly string[]>>;

  /** Header names and values, alternating. */
  get rawHeaders(): readonly string[] {
    return Object.entries(this.headersDistinct).flatMap(([name, values]) => values.flatMap((value) => [name, value]));
  }
}

/** A header's name as written, and its value. */
export type WrittenHeader = readonly [name: string, value: string];

export abstract class DetachedResponse extends Writable {
  statusCode = 200;
  headersSent = false;
  /** The request, under Node's name for it. */
  readonly req: DetachedRequest;
  #headers: WrittenHeader[] = [];

  constructor(req: DetachedRequest, highWaterMark: number) {
    super({ highWaterMark, decodeStrings: true });
    this.req = req;
  }

  setHeader(name: string, value: OutgoingHttpHeaders[string]): this {
    const lower = name.toLowerCase();
    if (this.#headers.length > 0) this.#headers = this.#headers.filter(([known]) => known.toLowerCase() !== lower);
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) this.#headers.push([name, String(one)]);
    }
    return this;
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.flushHeaders();
    return this;
  }

  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    this.begin(this.#headers);
  }

  /** Sends the head, before any part of the body. Called at most once. */
  protected abstract begin(headers: readonly WrittenHeader[]): void;
}

/** Passes the request and the response to code that expects Node's types. */
export function serveDetached(
  request: DetachedRequest,
  response: DetachedResponse,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  // The two classes have all members that the bridge uses.
  serve(request as unknown as IncomingMessage, response as unknown as ServerResponse);
}
