/** Properties of listen addresses that are known before a client connects. */
import type { BoundAddress, HttpListenerConfig, ListenAddress, SocketAddress } from '../../config/listener.ts';
import { isLoopback } from '../addresses.ts';
import { showSocketPath } from '../socket-addresses.ts';

/** Connecting to a socket file requires write permission. */
const GROUP_OR_OTHERS_CONNECT = 0o022;
const OTHERS_CONNECT = 0o002;

export function boundAddress(address: ListenAddress): BoundAddress {
  return address.kind === 'inherited' ? address.bound : address;
}

/** Returns true if other machines can reach the address. */
export function isExposed(address: ListenAddress): boolean {
  const bound = boundAddress(address);
  return bound.kind === 'tcp' && !isLoopback(bound.host);
}

/**
 * Returns true if only programs of the user who runs the bridge can reach the address. The machine is assumed to have a
 * single user, unless the mode of a socket lets others connect.
 */
export function isForOneUser(address: ListenAddress): boolean {
  const bound = boundAddress(address);
  if (bound.kind === 'tcp') return isLoopback(bound.host);
  return (bound.mode & GROUP_OR_OTHERS_CONNECT) === 0;
}

/** Returns true if every user of this machine may connect to the socket. */
export function isOpenToAllUsers({ mode }: SocketAddress): boolean {
  return (mode & OTHERS_CONNECT) !== 0;
}

/** The part of a client's URL before the path of an endpoint. */
export function addressBase(address: BoundAddress, tls: HttpListenerConfig['tls']): string {
  if (address.kind === 'socket') return `${showSocketPath(address.path)}#`;
  const { host, port } = address;
  return `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
