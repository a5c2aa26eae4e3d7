/** Addresses of local sockets and byte streams: Unix sockets and named pipes, with or without HTTP. */
import type { GrpcTarget, StreamAddress } from '../config/server.ts';
import { toPrintable } from '../printable.ts';

/** The prefix of named pipes on Windows. */
const PIPE_PREFIX = '\\\\.\\pipe\\';

/**
 * A URL that is requested over a local socket. Its host is always `localhost` and not used to connect. URLs derived
 * from it, such as redirects, must be created with `at`, so that messages name the socket.
 */
export class SocketUrl extends URL {
  readonly socketPath: string;

  constructor(path: string, socketPath: string) {
    super(path, 'http://localhost');
    this.socketPath = socketPath;
  }

  /** Returns another path on the same socket. */
  at({ pathname, search }: URL): SocketUrl {
    return new SocketUrl(`http://localhost${pathname}${search}`, this.socketPath);
  }
}

/**
 * Checks for the property and not with `instanceof`, because a separately loaded part of the program has its own copy
 * of the class.
 */
export function isSocketUrl(url: URL): url is SocketUrl {
  return 'socketPath' in url;
}

/** Returns a derived URL that is reached over the same socket as its origin, if there is one. */
export function reachedAs(from: URL, made: URL): URL {
  return isSocketUrl(from) ? from.at(made) : made;
}

/** Formats a socket's path in the syntax of VS Code: `unix:///run/mcp.sock`, `pipe:///pipe/mcp`. */
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

// ---- Byte stream addresses, shown as they are written

/** Socket paths cannot be longer. */
const LONGEST_PATH = 1024;

/**
 * Formats the address as `tcp://host:port`, `tls://host:port` or `unix:///path.sock`. It holds no credential, because
 * access to a socket is controlled by its file.
 */
export function showStreamAddress(address: StreamAddress): string {
  if (address.kind === 'socket') return toPrintable(showSocketPath(address.path), LONGEST_PATH);
  const { host, port, tls } = address;
  return `${tls === 'on' ? 'tls' : 'tcp'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Formats the address of a port for gRPC as `grpc://host:port`, or `grpcs://host:port` with TLS. */
export function showGrpcAddress({ host, port, tls }: Omit<GrpcTarget, 'kind'>): string {
  return `${tls === 'on' ? 'grpcs' : 'grpc'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
