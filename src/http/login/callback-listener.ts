import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BridgeError } from '../../errors.ts';
import { hostOf } from '../addresses.ts';

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  connection: 'close',
};

/** What a browser is told when it comes back. */
export type CallbackVerdict = 'done' | 'failed' | 'ignored';

const PAGES: Readonly<Record<CallbackVerdict, readonly [status: number, text: string]>> = {
  done: [200, 'You have allowed it. You can close this page and go back to your program.'],
  failed: [400, 'This did not work. You can close this page; your program knows more.'],
  ignored: [400, 'Nobody is waiting for this answer.'],
};

/**
 * The address a browser comes back to after a login: one path on this machine, for as long as one login takes. Whoever
 * else finds it gets nothing from it.
 */
export class CallbackListener {
  readonly #server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 10_000 });
  readonly #callback: URL;
  #receive: ((parameters: URLSearchParams) => CallbackVerdict) | undefined;

  /** @param callback http on this machine; port 0 picks a free one */
  constructor(callback: URL) {
    this.#callback = callback;
    this.#server.on('request', (request, response) => this.#answer(request, response));
  }

  /** Resolves with where it listens. Rejects with ERR_CONFIG_LISTEN. */
  async listen(): Promise<URL> {
    const { port } = this.#callback;
    const host = hostOf(this.#callback);
    const address = host === '::1' ? host : '127.0.0.1';
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (cause: NodeJS.ErrnoException) => {
        const problem = `Cannot listen at ${address}:${port} for the end of a login (${cause.code})`;
        const message = `${problem}. Choose another port with --oauth-callback, or 0 for any.`;
        reject(new BridgeError('ERR_CONFIG_LISTEN', message, { cause }));
      });
      this.#server.listen(Number(port || '80'), address, resolve);
    });
    const listening = new URL(this.#callback);
    listening.port = String((this.#server.address() as AddressInfo).port);
    return listening;
  }

  /** Whoever comes from now on is shown to this function. */
  receive(receive: (parameters: URLSearchParams) => CallbackVerdict): void {
    this.#receive = receive;
  }

  #answer({ method, url = '', headers }: IncomingMessage, response: ServerResponse): void {
    const target = URL.canParse(url, 'http://callback') ? new URL(url, 'http://callback') : undefined;
    // A page elsewhere whose name was made to lead here has another Host.
    const isOurs = headers.host?.replace(/:\d+$/, '') === this.#callback.hostname;
    if (target?.pathname !== this.#callback.pathname || !isOurs)
      return void response.writeHead(404, PAGE_HEADERS).end();
    if (method !== 'GET') return void response.writeHead(405, { ...PAGE_HEADERS, allow: 'GET' }).end();
    const [status, text] = PAGES[this.#receive?.(target.searchParams) ?? 'ignored'];
    response.writeHead(status, PAGE_HEADERS).end(`<!doctype html><title>mcp-portage</title><p>${text}</p>\n`);
  }

  /** May be called twice. A page that is being answered gets to its end. */
  close(): void {
    this.#receive = undefined;
    this.#server.close();
    this.#server.closeIdleConnections();
  }
}
