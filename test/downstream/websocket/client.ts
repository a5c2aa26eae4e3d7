import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { type ClientOptions, WebSocket } from 'ws';
import { Inbox } from '../../contract/inbox.ts';
import { initialize, textOf } from '../../support/legacy-clients.ts';

export interface Refusal {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A client of the library `ws`, which knows nothing of MCP. */
export class RawClient {
  readonly socket: WebSocket;
  readonly inbox = new Inbox();
  /** Resolves with code and words. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;

  constructor(port: number, options: ClientOptions & { readonly path?: string } = {}) {
    const { path = '/ws', ...ofSocket } = options;
    this.socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, 'mcp', { perMessageDeflate: false, ...ofSocket });
    this.socket.on('error', () => undefined);
    this.socket.on('message', (data) => this.inbox.put(data.toString()));
    this.closed = once(this.socket, 'close').then(([code, reason]) => ({ code, reason: String(reason) }));
  }

  async opened(): Promise<this> {
    await once(this.socket, 'open');
    return this;
  }

  /** What the server answers instead of opening it. */
  async refused(): Promise<Refusal> {
    const [, response] = await once(this.socket, 'unexpected-response');
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks).toString() };
  }

  send(message: object | string): void {
    this.socket.send(textOf(message));
  }

  async initialized(): Promise<this> {
    await this.opened();
    this.send(initialize());
    await this.inbox.next();
    return this;
  }
}
