/** A request and a response of the Fetch standard, in the shape of Node's: what serves one serves the other. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';

/** Serves a request of Node. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Resolves with the head of the response; its body goes on. */
export function serveFetch(request: Request, serve: Serve): Promise<Response> {
  return new Promise((resolve) => {
    const url = new URL(request.url);
    const socket = new Socket();
    if (url.protocol === 'https:') Object.assign(socket, { encrypted: true });
    const asked = new FetchRequest(request, url, socket);
    const response = new FetchResponse(asked, resolve);
    const leave = (): void => void response.destroy();
    request.signal.addEventListener('abort', leave, { once: true });
    response.once('close', () => {
      request.signal.removeEventListener('abort', leave);
      asked.destroy();
      socket.destroy();
    });
    // The bridge uses the head of both, the stream with its counters and events, and the socket, all of which are there.
    serve(asked as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
}

class FetchRequest extends Readable {
  readonly method: string;
  /** Changed by whoever takes a prefix off. */
  url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly headersDistinct: Readonly<Record<string, readonly string[]>>;
  readonly socket: Socket;
  readonly #body: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor({ method, headers, body }: Request, url: URL, socket: Socket) {
    super();
    // Where a runtime leaves the header out, the URL has it from there.
    this.headers = { host: url.host, ...Object.fromEntries(headers) };
    this.headersDistinct = Object.fromEntries(Object.entries(this.headers).map(([name, value]) => [name, [value]]));
    this.method = method;
    this.url = url.pathname + url.search;
    this.socket = socket;
    this.#body = body?.getReader();
  }

  override _read(): void {
    const next = this.#body?.read() ?? Promise.resolve({ done: true, value: undefined } as const);
    next.then(
      ({ done, value }) => this.push(done ? null : value),
      // The client has left in the middle of its message.
      () => this.destroy(),
    );
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    // A body that was refused is not wanted any more.
    this.#body?.cancel().catch(() => undefined);
    destroyed(error);
  }
}

/** Bytes that wait for whoever reads the body, above which the writer is told to wait. */
const FULL_BYTES = 64 * 1024;
/** [Fetch 2.2.3] A response with one of these cannot have a body. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304];

class FetchResponse extends Writable {
  statusCode = 200;
  headersSent = false;
  /** There is none between us and whoever reads the body. */
  readonly socket = null;
  /** As Node names it. */
  readonly req: FetchRequest;
  readonly #headers = new Headers();
  readonly #begin: (response: Response) => void;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Takes the next bytes when the reader wants some. */
  #resume: (() => void) | undefined;

  constructor(req: FetchRequest, begin: (response: Response) => void) {
    super({ highWaterMark: FULL_BYTES, decodeStrings: true });
    this.req = req;
    this.#begin = begin;
  }

  setHeader(name: string, value: OutgoingHttpHeaders[string]): this {
    this.#headers.delete(name);
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) this.#headers.append(name, String(one));
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
    const init = { status: this.statusCode, headers: this.#headers };
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#body = controller;
        },
        pull: () => {
          const resume = this.#resume;
          this.#resume = undefined;
          resume?.();
        },
        cancel: () => void this.destroy(),
      },
      { highWaterMark: 1 },
    );
    this.#begin(new Response(WITHOUT_BODY.includes(this.statusCode) ? null : stream, init));
  }

  override _write(bytes: Buffer, _encoding: string, taken: () => void): void {
    this.flushHeaders();
    this.#body?.enqueue(bytes);
    if ((this.#body?.desiredSize ?? 0) > 0) taken();
    else this.#resume = taken;
  }

  override _final(finished: () => void): void {
    this.flushHeaders();
    this.#body?.close();
    this.#body = undefined;
    finished();
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    // Somebody waits for it, though the client may have left.
    if (!this.headersSent) this.#begin(new Response(null, { status: 503 }));
    this.headersSent = true;
    this.#body?.error(error ?? new Error('the response was cut'));
    this.#body = undefined;
    destroyed(error);
  }
}
