/** A request and a response of the Fetch standard in the shape of Node's, so that the same code serves both kinds. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import {
  DetachedRequest,
  DetachedResponse,
  serveDetached,
  type WrittenHeader,
} from '../http/server/detached-exchange.ts';

/** Serves a Node request. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Resolves with the response once its head is written; the body follows as a stream. */
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
    serveDetached(asked, response, serve);
  });
}

class FetchRequest extends DetachedRequest {
  readonly #body: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor({ method, headers, body }: Request, url: URL, socket: Socket) {
    // Some runtimes leave out the Host header; its value is then taken from the URL.
    const all = { host: url.host, ...Object.fromEntries(headers) };
    super({ method, url: url.pathname + url.search, headers: all, socket });
    this.#body = body?.getReader();
  }

  override get headersDistinct(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(Object.entries(this.headers).map(([name, value]) => [name, [value]]));
  }

  override _read(): void {
    const next = this.#body?.read() ?? Promise.resolve({ done: true, value: undefined } as const);
    next.then(
      ({ done, value }) => this.push(done ? null : value),
      // The client has disconnected in the middle of its message.
      () => this.destroy(),
    );
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    // The rest of a rejected body is not read.
    this.#body?.cancel().catch(() => undefined);
    destroyed(error);
  }
}

/** The writer is paused while more bytes than this wait for the reader of the body. */
const FULL_BYTES = 64 * 1024;
/** [Fetch 2.2.3] A response with one of these statuses cannot have a body. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304];

class FetchResponse extends DetachedResponse {
  /** No socket is known: the program's web server owns the connection. */
  readonly socket = null;
  readonly #begin: (response: Response) => void;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Continues writing when the reader wants more bytes. */
  #resume: (() => void) | undefined;

  constructor(req: FetchRequest, begin: (response: Response) => void) {
    super(req, FULL_BYTES);
    this.#begin = begin;
  }

  protected override begin(written: readonly WrittenHeader[]): void {
    const headers = new Headers();
    for (const [name, value] of written) headers.append(name, value);
    const init = { status: this.statusCode, headers };
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
    // The caller's promise must resolve even if the client has disconnected.
    if (!this.headersSent) this.#begin(new Response(null, { status: 503 }));
    this.headersSent = true;
    this.#body?.error(error ?? new Error('the response was cut'));
    this.#body = undefined;
    destroyed(error);
  }
}
