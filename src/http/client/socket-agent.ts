import { Agent, type AgentOptions, type IncomingMessage, request } from 'node:http';
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
      try {
        resolve(toResponse(answer));
      } catch (thrown) {
        // Not every status that a server can send is one that a Response can have.
        answer.destroy();
        reject(thrown);
      }
    });
    sent.once('error', reject);
    sent.end();
  });
}

/** [RFC 9110 15] Responses with these statuses have no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Throws a RangeError for a status that HTTP does not have. */
function toResponse(answer: IncomingMessage): Response {
  const { statusCode: status = 0 } = answer;
  const headers = Object.entries(answer.headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((text): [string, string] => [name, text]),
  );
  const isEmpty = WITHOUT_BODY.has(status);
  if (isEmpty) answer.resume();
  return new Response(isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>), { status, headers });
}
