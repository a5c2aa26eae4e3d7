/**
 * How an ordinary request of HTTP/1.1 becomes a link between two replicas: an upgrade, with which each shows that it has the
 * cluster key, and then TLS 1.3 on the connection, with the key that both have made of that.
 */
import type { Socket } from 'node:net';
import { type ConnectionOptions, connect, createServer, type TLSSocket } from 'node:tls';
import type { Upgrade } from '../../../http/server/upgrades.ts';

/** What a replica asks to go on with. [RFC 9110 7.8] */
export const LINK_PROTOCOL = 'mcp-portage-link';
/** What the two show each other with the request and its answer. Lower case, as Node reads it. */
export const LINK_HEADER = 'mcp-portage-link';

/** A name for the key of the link: TLS wants one, and there is only one key. */
const IDENTITY = 'link';

/**
 * A key that is shared before needs a cipher with SHA-256 [RFC 8446 4.2.11]. Keys for the traffic are agreed on anew for each
 * link, so what was recorded cannot be read by whoever gets the cluster key later.
 */
const TLS_OPTIONS = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const satisfies ConnectionOptions;

/**
 * Begins TLS at the replica that has asked for the link. `secureConnect` says that the other end has the key, and `error`
 * that it does not.
 * @param key 32 bytes
 */
export function secureAsEntry({ socket, head }: Upgrade, key: Buffer): TLSSocket {
  return connect({
    ...TLS_OPTIONS,
    socket: withHead(socket, head),
    pskCallback: () => ({ psk: key, identity: IDENTITY }),
    // Only an owner that does not have the key shows a certificate, and none is good enough.
    ca: [],
    rejectUnauthorized: true,
  });
}

/**
 * Begins TLS at the replica that was asked for the link. Calls `secured` once the other end has shown that it has the key. If
 * it does not, the connection ends.
 * @param key 32 bytes
 */
export function secureAsOwner({ socket, head }: Upgrade, key: Buffer, secured: (socket: TLSSocket) => void): void {
  // Node takes keys that are shared before only from a server, which need not listen to be given a connection.
  const server = createServer({ ...TLS_OPTIONS, pskCallback: (_, identity) => (identity === IDENTITY ? key : null) });
  server.once('secureConnection', secured);
  // Whoever closes its side in the middle of a handshake has given up; an HTTP server would let it wait for the answer.
  socket.allowHalfOpen = false;
  server.emit('connection', withHead(socket, head));
}

/** What has come behind the request, or behind its answer, is the first that TLS reads. */
function withHead(socket: Socket, head: Buffer): Socket {
  if (head.length > 0) socket.unshift(head);
  return socket;
}
