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
    if (!asksFor(request, protocols)) return readAgain(server, request, { socket, head });
    (request as UpgradingRequest)[UPGRADE] = { socket, head };
    handle(request, respondOn(request, socket));
  });
}

/** Node has let go of the connection, so the answer is its last. */
function respondOn(request: IncomingMessage, socket: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // What breaks is seen by the end of the connection.
  socket.on('error', () => {});
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  return response;
}

/** Gives the connection back to Node, with the request before it as if it had never been read, and without its wish. */
function readAgain(server: Server, request: IncomingMessage, { socket, head }: Upgrade): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${value}`);
  }
  const begun = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.unshift(Buffer.concat([begun, head]));
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket);
}
