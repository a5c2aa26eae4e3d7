import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** The connection of a request to switch to another protocol. `head` has the bytes received after the request. */
export interface Upgrade {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Stored as a property of the request, like its caller (http/auth/callers.ts). */
const UPGRADE = Symbol('upgrade');

type UpgradingRequest = IncomingMessage & { [UPGRADE]?: Upgrade };

/** Returns the connection that may be taken over to answer the request; undefined for an ordinary request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return (request as UpgradingRequest)[UPGRADE];
}

/** [RFC 6455 4.1] The request must be a GET without a body. */
function asksFor({ method, headers }: IncomingMessage, protocols: readonly string[]): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  return method === 'GET' && protocols.includes(headers.upgrade?.toLowerCase() ?? '') && !hasBody;
}

/**
 * Handles upgrade requests for these protocols like all other requests, with a response to reject them. The handler
 * that accepts one takes over its connection, and leaves the response open as long as it is in use.
 *
 * Node emits `upgrade` for any protocol, and Java's HTTP client asks for h2c with the first request on each connection,
 * whatever its purpose. A server may ignore such a request's Upgrade header [RFC 9110 7.8], as is done here.
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
      // Must precede the wait, because a connection with unread bytes does not report its end.
      unread(request, { socket, head });
      // Passes the connection back to Node.
      whenAnswered(socket, () => server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket));
    }
  });
}

/** Node's internal property of a connection: the response that is being sent. */
type ServedSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

function unansweredOn(socket: Socket): ServerResponse | undefined {
  return (socket as ServedSocket)._httpMessage ?? undefined;
}

/**
 * Continues when the earlier requests on the connection have been answered. Node has detached the connection, but still
 * sends their responses one after the other. If the connection ends with one of them, `goOn` is not called.
 */
function whenAnswered(socket: Socket, goOn: () => void): void {
  if (unansweredOn(socket) === undefined) return goOn();
  const drained = (): void => {
    const response = unansweredOn(socket);
    if (response?.writableNeedDrain) response.emit('drain');
  };
  // Without this listener, Node's handling of those requests would resume the connection, and its bytes would be lost.
  const notYet = (): void => {};
  socket.on('error', ignore).on('drain', drained).on('readable', notYet);
  const answered = (): void => {
    const next = unansweredOn(socket);
    if (next !== undefined) return void next.once('close', answered);
    if (!socket.writable) return;
    // Node has set this timeout and does not clear it after detaching the connection.
    socket.setTimeout(0);
    goOn();
    socket.off('error', ignore).off('drain', drained).off('readable', notYet);
  };
  answered();
}

/** Ignores an error, because the end of the connection reports it. */
function ignore(): void {}

/** Creates a response on a connection that Node has detached. The connection closes after it. */
function respondOn(request: IncomingMessage, socket: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  socket.on('error', ignore);
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  return response;
}

/** Puts a request back in front of its connection as if it had never been read, but without its Upgrade header. */
function unread({ method, url, httpVersion, rawHeaders }: IncomingMessage, { socket, head }: Upgrade): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${value}`);
  }
  const begun = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.unshift(Buffer.concat([begun, head]));
}
