/**
 * Parses the addresses that `serve` listens on: a port, Unix sockets and pipes, inherited sockets, byte streams and gRPC.
 */
import type { BoundAddress, ListenAddress, SocketAddress, TcpAddress } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import { showStreamAddress } from '../../../http/socket-addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { RemoteSurroundings } from '../servers/remote.ts';
import { findInheritedSockets } from './inherited-sockets.ts';

/**
 * Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. With a socket, a byte stream or gRPC, there is a port only if the user
 * asks for one.
 */
export function parseAddresses(given: GivenOptions, { env }: Pick<RemoteSurroundings, 'env'>): ParsedAddresses {
  const sockets = parseSockets(given);
  const streams = parseStreams(given);
  refuseNeedlessMode(given, sockets.length + streams.filter(({ address }) => address.kind === 'socket').length);
  const inherited = findInheritedSockets(env);
  const others = [...sockets, ...inherited];
  const grpc = parseGrpc(given);
  const isPortNeeded = others.length + streams.length + grpc.length === 0 || isPortWanted(given);
  return { addresses: isPortNeeded ? [parsePortAddress(given), ...others] : others, streams, grpc };
}

/** An address for byte streams, and the server that it leads to: undefined if there is only one. */
export interface NamedStream {
  readonly name: string | undefined;
  readonly address: BoundAddress;
}

/** A port for gRPC, and the server that it leads to: undefined if there is only one. */
export interface NamedGrpc {
  readonly name: string | undefined;
  readonly address: TcpAddress;
}

export interface ParsedAddresses {
  /** Addresses for HTTP. */
  readonly addresses: readonly ListenAddress[];
  readonly streams: readonly NamedStream[];
  readonly grpc: readonly NamedGrpc[];
}

/**
 * Returns true if a port was asked for, other than in the environment: there, as in our containers, the variables say
 * which port to use, not that there has to be one.
 */
function isPortWanted(given: GivenOptions): boolean {
  const names = ['port', 'host'] as const;
  return names.some((name) => given.isGiven(name) && !given.isFromEnvironment(name));
}

function parsePortAddress(given: GivenOptions): TcpAddress {
  return {
    kind: 'tcp',
    host: given.get('host'),
    port: given.get('port'),
  };
}

function parseSockets(given: GivenOptions): readonly SocketAddress[] {
  const paths = given.get('socket');
  const mode = given.get('socketMode');
  const twice = paths.find((path, index) => paths.indexOf(path) !== index);
  if (twice !== undefined) throw excluded(`${given.placeOf('socket')} names ${twice} twice; leave one of them out.`);
  return paths.map((path) => ({ kind: 'socket', path, mode }));
}

function parseStreams(given: GivenOptions): readonly NamedStream[] {
  const mode = given.get('socketMode');
  const streams = given
    .get('stream')
    .map(({ name, address }) => ({ name, address: address.kind === 'tcp' ? address : { ...address, mode } }));
  const shown = streams.map(({ address }) =>
    showStreamAddress(address.kind === 'tcp' ? { ...address, tls: 'off' } : address),
  );
  // Port 0 may be given several times: the system chooses a different port for each.
  const twice = streams.findIndex(
    ({ address }, index) =>
      !(address.kind === 'tcp' && address.port === 0) && shown.indexOf(shown[index] ?? '') !== index,
  );
  if (twice >= 0) throw excluded(`${given.placeOf('stream')} names ${shown[twice]} twice; leave one of them out.`);
  return streams;
}

function parseGrpc(given: GivenOptions): readonly NamedGrpc[] {
  const places = given.get('grpc');
  const shown = places.map(({ address: { host, port } }) => `${host}:${port}`);
  const twice = places.findIndex(
    ({ address }, index) => address.port !== 0 && shown.indexOf(shown[index] ?? '') !== index,
  );
  if (twice >= 0) throw excluded(`${given.placeOf('grpc')} names ${shown[twice]} twice; leave one of them out.`);
  return places;
}

function refuseNeedlessMode(given: GivenOptions, sockets: number): void {
  if (sockets > 0 || !given.isGiven('socketMode')) return;
  throw excluded(
    `${given.placeOf('socketMode')} needs ${given.nameOf('socket')}, or ${given.nameOf('stream')} with a Unix socket: it says who may connect to that.`,
  );
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
