/** Starts listening on a port, on a local socket, or on an inherited socket. */
import type { AddressInfo, Server } from 'node:net';
import type { BoundAddress, HttpListenerConfig, ListenAddress, TcpAddress } from '../../config/listener.ts';
import { BridgeError } from '../../errors.ts';
import { isPipePath } from '../socket-addresses.ts';
import { begin } from './begin-listening.ts';
import { listenAtSocketFile, type SocketFile } from './socket-file.ts';

/**
 * A listener's address, with the port that the system has chosen, and its socket file. `file` is undefined if there is
 * none, or if it belongs to another process.
 */
export interface Listening {
  readonly bound: BoundAddress;
  readonly file: SocketFile | undefined;
}

/** The options that users have written for this kind of listener, so that errors name the one to change. */
export interface ListenOptionWords {
  readonly port: string;
  readonly anyPort: string;
  readonly thisMachine: string;
  readonly socket: string;
}

type Spelling = HttpListenerConfig['spelling'];

export function wordsOfHttp(spelling: Spelling): ListenOptionWords {
  const [port, host, socket] = spell(spelling, 'port', 'host', 'socket');
  return { port, anyPort: `${port} 0`, thisMachine: `${host} 127.0.0.1`, socket };
}

export function wordsOfStreams(spelling: Spelling): ListenOptionWords {
  const [stream] = spell(spelling, 'stream');
  return { port: stream, anyPort: 'port 0', thisMachine: '127.0.0.1', socket: stream };
}

export function wordsOfGrpc(spelling: Spelling): ListenOptionWords {
  const [grpc] = spell(spelling, 'grpc');
  return { port: grpc, anyPort: 'port 0', thisMachine: '127.0.0.1', socket: grpc };
}

function spell<const N extends readonly string[]>(spelling: Spelling, ...names: N): { [K in keyof N]: string } {
  return names.map((name) => (spelling === 'flags' ? `--${name}` : name)) as { [K in keyof N]: string };
}

/** Rejects with ERR_CONFIG_LISTEN. */
export async function listenAt(server: Server, address: ListenAddress, options: ListenOptionWords): Promise<Listening> {
  switch (address.kind) {
    case 'tcp': {
      const { host, port } = address;
      await begin(server, { host, port }, (error) => explainPort(error, address, options));
      return { bound: { kind: 'tcp', host, port: (server.address() as AddressInfo).port }, file: undefined };
    }
    case 'socket': {
      if (!isPipePath(address.path))
        return { bound: address, file: await listenAtSocketFile(server, address, options.socket) };
      await begin(server, { path: address.path }, (error) => explainPipe(error, address.path, options));
      return { bound: address, file: undefined };
    }
    case 'inherited': {
      const { fd, bound } = address;
      await begin(server, { fd }, (error) =>
        refuse(`Cannot listen on the inherited socket ${fd}: ${error.message}.`, error),
      );
      return { bound, file: undefined };
    }
  }
}

/** Explains an error of a server that was already listening. */
export function explainListenError(
  error: NodeJS.ErrnoException,
  address: ListenAddress,
  options: ListenOptionWords,
): BridgeError {
  if (address.kind === 'tcp') return explainPort(error, address, options);
  const where = address.kind === 'socket' ? address.path : `the inherited socket ${address.fd}`;
  return refuse(`Cannot listen on ${where}: ${error.message}.`, error);
}

function explainPort(
  error: NodeJS.ErrnoException,
  { host, port }: TcpAddress,
  options: ListenOptionWords,
): BridgeError {
  const where = `${host}:${port}`;
  switch (error.code) {
    case 'EADDRINUSE':
      return refuse(
        `Port ${port} on ${host} is in use by another program; choose another with ${options.port}, or ${options.anyPort} for any free one.`,
        error,
      );
    case 'EACCES':
      return refuse(
        `Not allowed to listen on ${where}; ports below 1024 need privileges, choose a higher one with ${options.port}.`,
        error,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return refuse(
        `${host} is no address of this machine; use ${options.thisMachine}, or 0.0.0.0 for every interface.`,
        error,
      );
    default:
      return refuse(`Cannot listen on ${where}: ${error.message}.`, error);
  }
}

function explainPipe(error: NodeJS.ErrnoException, path: string, { socket }: ListenOptionWords): BridgeError {
  if (error.code !== 'EADDRINUSE') return refuse(`Cannot listen on the named pipe ${path}: ${error.message}.`, error);
  return refuse(`Another program listens on the named pipe ${path}; choose another name with ${socket}.`, error);
}

function refuse(message: string, cause: Error): BridgeError {
  return new BridgeError('ERR_CONFIG_LISTEN', message, { cause });
}
