/** What is known of the addresses where we listen before anybody comes. */
import type { BoundAddress, HttpListenerConfig, ListenAddress, SocketAddress } from '../../config/listener.ts';
import { isLoopback } from '../addresses.ts';
import { showSocketPath } from '../socket-addresses.ts';

/** Write permission is what connecting takes. */
const GROUP_OR_OTHERS_CONNECT = 0o022;
const OTHERS_CONNECT = 0o002;

export function boundAddress(address: ListenAddress): BoundAddress {
  return address.kind === 'inherited' ? address.bound : address;
}

/** Can other machines reach it? */
export function isExposed(address: ListenAddress): boolean {
  const bound = boundAddress(address);
  return bound.kind === 'tcp' && !isLoopback(bound.host);
}

/**
 * Does whoever can reach it belong to the user who runs us? This machine is taken to be one user's, unless the mode of a
 * socket says that others use it, too.
 */
export function isForOneUser(address: ListenAddress): boolean {
  const bound = boundAddress(address);
  if (bound.kind === 'tcp') return isLoopback(bound.host);
  return (bound.mode & GROUP_OR_OTHERS_CONNECT) === 0;
}

/** May every user of this machine connect to it? */
export function isOpenToAllUsers({ mode }: SocketAddress): boolean {
  return (mode & OTHERS_CONNECT) !== 0;
}

/** How clients find it: what comes before the path of an endpoint. */
export function addressBase(address: BoundAddress, tls: HttpListenerConfig['tls']): string {
  if (address.kind === 'socket') return `${showSocketPath(address.path)}#`;
  const { host, port } = address;
  return `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
