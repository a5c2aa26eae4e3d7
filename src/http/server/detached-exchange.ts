/**
 * A request and a response in the shape of Node's that have no connection of their own: of the Fetch standard, or passed on by
 * another replica. What serves those of Node serves these: the bridge uses the head of both, the streams with their counters
 * and events, and the socket of a request, which is one that was never connected.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';

export interface DetachedHead {
  readonly method: string;
  readonly url: string;
  /** Names in lower case, each once. */
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Socket;
}

export abstract class DetachedRequest extends Readable {
  readonly method: string;
  /** Changed by whoever takes a prefix off. */
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

  /** All values of each name. */
  abstract get headersDistinct(): Readonly<Record<string, readonly string[]>>;

  /** Names and values in turn. */
  get rawHeaders(): readonly string[] {
    return Object.entries(this.headersDistinct).flatMap(([name, values]) => values.flatMap((value) => [name, value]));
  }
}

/** A name as it was written, and its value. */
export type WrittenHeader = readonly [name: string, value: string];

export abstract class DetachedResponse extends Writable {
  statusCode = 200;
  headersSent = false;
  /** As Node names it. */
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

  /** Sends the head, before anything of the body. Called once at most. */
  protected abstract begin(headers: readonly WrittenHeader[]): void;
}

/** Hands both over to what serves those of Node. */
export function serveDetached(
  request: DetachedRequest,
  response: DetachedResponse,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  // What the bridge uses of the two is named above, and all of it is there.
  serve(request as unknown as IncomingMessage, response as unknown as ServerResponse);
}
