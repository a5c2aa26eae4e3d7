/** Addresses of byte streams: how they are shown, which is how they are written. */
import type { StreamAddress } from '../config/server.ts';
import { toPrintable } from '../printable.ts';
import { showSocketPath } from './socket-url.ts';

/** Longer ones cannot be paths of sockets. */
const LONGEST_PATH = 1024;

/** `tcp://host:port`, `tls://host:port`, `unix:///path.sock`. Holds no credential: who may use a socket is up to its file. */
export function showStreamAddress(address: StreamAddress): string {
  if (address.kind === 'socket') return toPrintable(showSocketPath(address.path), LONGEST_PATH);
  const { host, port, tls } = address;
  return `${tls === 'on' ? 'tls' : 'tcp'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
