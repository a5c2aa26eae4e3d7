/** Addresses other than those of HTTP over TCP: Unix sockets and named pipes, with or without HTTP, and byte streams. */
import type { StreamAddress } from '../config/server.ts';
import { toPrintable } from '../printable.ts';

/** What named pipes of Windows are called to Node. */
const PIPE_PREFIX = '\\\\.\\pipe\\';

/**
 * A URL that is asked for over a socket of this machine: its host is `localhost` whatever the socket is called, and leads
 * nowhere. A redirect or another address that comes from it has to be made with `at`, so that messages name the socket.
 */
export class SocketUrl extends URL {
  readonly socketPath: string;

  constructor(path: string, socketPath: string) {
    super(path, 'http://localhost');
    this.socketPath = socketPath;
  }

  /** Another path on the same socket. */
  at({ pathname, search }: URL): SocketUrl {
    return new SocketUrl(`http://localhost${pathname}${search}`, this.socketPath);
  }
}

/** By what it has: a part of the program that is loaded by itself has a class of its own. */
export function isSocketUrl(url: URL): url is SocketUrl {
  return 'socketPath' in url;
}

/** A URL that was made from another one is reached as that one is. */
export function reachedAs(from: URL, made: URL): URL {
  return isSocketUrl(from) ? from.at(made) : made;
}

/** `unix:///run/mcp.sock`, `pipe:///pipe/mcp`: as VS Code reads them. */
export function showSocketPath(path: string): string {
  if (path.startsWith(PIPE_PREFIX)) return `pipe:///pipe/${encodePath(path.slice(PIPE_PREFIX.length))}`;
  return `unix://${encodePath(path)}`;
}

export function pipePath(name: string): string {
  return PIPE_PREFIX + name;
}

export function isPipePath(path: string): boolean {
  return path.startsWith(PIPE_PREFIX);
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

// ---- Byte streams: an address is shown as it is written.

/** Longer ones cannot be paths of sockets. */
const LONGEST_PATH = 1024;

/** `tcp://host:port`, `tls://host:port`, `unix:///path.sock`. Holds no credential: who may use a socket is up to its file. */
export function showStreamAddress(address: StreamAddress): string {
  if (address.kind === 'socket') return toPrintable(showSocketPath(address.path), LONGEST_PATH);
  const { host, port, tls } = address;
  return `${tls === 'on' ? 'tls' : 'tcp'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
