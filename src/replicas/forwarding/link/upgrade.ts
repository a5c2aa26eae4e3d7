/**
 * Turns an HTTP/1.1 request into a link between two replicas. In the upgrade handshake each side proves that it has the
 * cluster key. The connection then carries TLS 1.3 with a key derived from that handshake.
 */
import type { Socket } from 'node:net';
import { type ConnectionOptions, connect, createServer, type TLSSocket } from 'node:tls';
import type { Upgrade } from '../../../http/server/upgrades.ts';

/** Protocol name in the Upgrade header. [RFC 9110 7.8] */
export const LINK_PROTOCOL = 'mcp-portage-link';
/**
 * Header that carries the offer in the request and the answer in the response. Lower case, as in Node's parsed headers.
 */
export const LINK_HEADER = 'mcp-portage-link';

/** PSK identity, which TLS requires. The name is constant, since a link has only one key. */
const IDENTITY = 'link';

/**
 * A pre-shared key needs a cipher with SHA-256 [RFC 8446 4.2.11]. Traffic keys are negotiated for each link, so
 * recorded traffic cannot be decrypted by an attacker who obtains the cluster key later.
 */
const TLS_OPTIONS = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const satisfies ConnectionOptions;

/**
 * Starts TLS at the replica that requested the link. `secureConnect` means that the other end has the key, `error` that
 * it does not.
 * @param key 32 bytes
 */
export function secureAsEntry({ socket, head }: Upgrade, key: Buffer): TLSSocket {
  return connect({
    ...TLS_OPTIONS,
    socket: withHead(socket, head),
    pskCallback: () => ({ psk: key, identity: IDENTITY }),
    // An owner without the key would present a certificate, and none is accepted.
    ca: [],
    rejectUnauthorized: true,
  });
}

/**
 * Starts TLS at the replica that accepted the link. Calls `secured` once the other end has proved that it has the key.
 * If it does not, the connection ends.
 * @param key 32 bytes
 */
export function secureAsOwner({ socket, head }: Upgrade, key: Buffer, secured: (socket: TLSSocket) => void): void {
  // Node supports pre-shared keys on the accepting side only through a server. That server need not listen: it is given
  // the connection.
  const server = createServer({ ...TLS_OPTIONS, pskCallback: (_, identity) => (identity === IDENTITY ? key : null) });
  server.once('secureConnection', secured);
  // A peer that half-closes its side during the handshake has given up. The HTTP server's sockets allow half-open
  // connections, which would keep it waiting.
  socket.allowHalfOpen = false;
  server.emit('connection', withHead(socket, head));
}

/** Puts back the bytes received after the request or the response, so that TLS reads them first. */
function withHead(socket: Socket, head: Buffer): Socket {
  if (head.length > 0) socket.unshift(head);
  return socket;
}
