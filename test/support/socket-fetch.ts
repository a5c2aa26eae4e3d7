import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';

/** Every connection goes to the socket. */
class ToSocket extends Agent {
  readonly #path: string;

  constructor(path: string) {
    super({ keepAlive: true });
    this.#path = path;
  }

  override createConnection(): Socket {
    return connect({ path: this.#path });
  }
}

/** `fetch` for official clients, over a Unix socket: what they ask for, by Node's own HTTP client. */
export function createSocketFetch(path: string): typeof fetch {
  const agent = new ToSocket(path);
  return async (input, init) => {
    const asked = new Request(input, init);
    const body = asked.body === null ? undefined : Buffer.from(await asked.arrayBuffer());
    const { method, signal } = asked;
    const headers = { ...Object.fromEntries(asked.headers), ...(body && { 'content-length': String(body.length) }) };
    return new Promise((resolve, reject) => {
      const sent = request(asked.url, { agent, method, headers, signal }, (answer) => {
        const { statusCode: status = 0 } = answer;
        const isEmpty = status === 204 || status === 304;
        if (isEmpty) answer.resume();
        const received = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, `${value}`]);
        const content = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
        resolve(new Response(content, { status, headers: received }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  };
}
