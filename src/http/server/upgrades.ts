import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** The connection of a request that asks to go on with another protocol. */
export interface Upgrade {
  readonly socket: Socket;
  /** What has come behind the request already. */
  readonly head: Buffer;
}

/** A property of the request itself, as its caller is (http/auth/callers.ts). */
const UPGRADE = Symbol('upgrade');

type UpgradingRequest = IncomingMessage & { [UPGRADE]?: Upgrade };

/** What can be taken over to answer the request; undefined: it asks for an ordinary answer. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return (request as UpgradingRequest)[UPGRADE];
}

/** [RFC 6455 4.1] It is a GET, and brings no body. */
function asksFor({ method, headers }: IncomingMessage, protocols: readonly string[]): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  return method === 'GET' && protocols.includes(headers.upgrade?.toLowerCase() ?? '') && !hasBody;
}

/**
 * Has requests for one of these protocols handled as all others are, with a response to refuse them by. Whoever serves one
 * takes its connection over, and leaves the response open for as long as that lasts.
 *
 * Node hands over every request that asks for any protocol, and Java's HTTP client asks for h2c with the first request on
 * each connection, whatever it is about. A server may pass over such a wish [RFC 9110 7.8], and so is done here.
 */
export function handleUpgrades(
  server: Server,
  protocols: readonly string[],
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (asksFor(request, protocols)) {
      whenAnswered(socket, () => {
        (request as UpgradingRequest)[UPGRADE] = { socket, head };
        handle(request, respondOn(request, socket));
      });
    } else {
      // Before the wait: a connection with something unread does not tell of its end.
      unread(request, { socket, head });
      // Gives it back to Node.
      whenAnswered(socket, () => server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket));
    }
  });
}

/** Node's mark on a connection: the response whose turn it is to be sent. */
type ServedSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

function unansweredOn(socket: Socket): ServerResponse | undefined {
  return (socket as ServedSocket)._httpMessage ?? undefined;
}

/**
 * Goes on when the requests that came before on the connection are answered. Node has let go of it, although it still sends
 * their responses one after the other. A connection that ends with one of them ends here, too.
 */
function whenAnswered(socket: Socket, goOn: () => void): void {
  if (unansweredOn(socket) === undefined) return goOn();
  const drained = (): void => {
    const response = unansweredOn(socket);
    if (response?.writableNeedDrain) response.emit('drain');
  };
  // Without a reader, what is still done with those requests would have the connection read, and its bytes lost.
  const notYet = (): void => {};
  socket.on('error', ignore).on('drain', drained).on('readable', notYet);
  const answered = (): void => {
    const next = unansweredOn(socket);
    if (next !== undefined) return void next.once('close', answered);
    if (!socket.writable) return;
    // Set by Node, which does not remember it after this.
    socket.setTimeout(0);
    goOn();
    socket.off('error', ignore).off('drain', drained).off('readable', notYet);
  };
  answered();
}

/** What breaks is seen by the end of the connection. */
function ignore(): void {}

/** Node has let go of the connection, so the answer is its last. */
function respondOn(request: IncomingMessage, socket: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  socket.on('error', ignore);
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  return response;
}

/** Puts a request back in front of its connection, as if it had never been read, and without its wish. */
function unread({ method, url, httpVersion, rawHeaders }: IncomingMessage, { socket, head }: Upgrade): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${value}`);
  }
  const begun = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.unshift(Buffer.concat([begun, head]));
}
