import { Agent, type AgentOptions, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { SocketUrl } from '../socket-addresses.ts';

/** Connects every request to one Unix socket or named pipe, whatever host it names. */
export class SocketAgent extends Agent {
  readonly #path: string;

  constructor(path: string, options: AgentOptions) {
    super(options);
    this.#path = path;
  }

  override createConnection(): Socket {
    return connect({ path: this.#path });
  }
}

/**
 * Sends a GET request over a Unix socket or a named pipe, and returns its response as `fetch` does. Does not follow
 * redirects.
 */
export function fetchOverSocket(
  url: SocketUrl,
  { headers, signal }: { readonly headers: Headers; readonly signal: AbortSignal | undefined },
): Promise<Response> {
  const agent = new SocketAgent(url.socketPath, { keepAlive: false });
  return new Promise((resolve, reject) => {
    const options = { agent, headers: Object.fromEntries(headers), ...(signal !== undefined && { signal }) };
    const sent = request(url, options, (answer) => {
      const { statusCode: status = 0 } = answer;
      const received = Object.entries(answer.headers).flatMap(([name, value]) =>
        [value ?? []].flat().map((text): [string, string] => [name, text]),
      );
      // The constructor of Response rejects a body with these statuses.
      const isEmpty = status === 204 || status === 304;
      if (isEmpty) answer.resume();
      const body = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
      resolve(new Response(body, { status, headers: received }));
    });
    sent.once('error', reject);
    sent.end();
  });
}
