/** HTTP over a Unix socket or a Windows named pipe: how such an address is written, shown and kept with its URL. */

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
