/**
 * Parses the addresses that `serve` listens on: a port, Unix sockets and pipes, inherited sockets, and byte streams.
 */
import type { ListenAddress, SocketAddress, TcpAddress } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import { showStreamAddress } from '../../../http/socket-addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { envNameOf } from '../../options/option-table.ts';
import type { RemoteSurroundings } from '../servers/remote.ts';
import * as value from '../value.ts';
import { findInheritedSockets } from './inherited-sockets.ts';
import { parseSocketPath } from './socket-path.ts';
import { parseStream, type WrittenStream } from './stream-address.ts';

/**
 * Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. With a socket or a byte stream, there is a port only if the user
 * asks for one.
 */
export function parseAddresses(given: GivenOptions, around: RemoteSurroundings): ListenPlacesWritten {
  const sockets = parseSockets(given, around);
  const streams = parseStreams(given, around);
  refuseNeedlessMode(given, sockets.length + streams.filter(({ address }) => address.kind === 'socket').length);
  const inherited = findInheritedSockets(around.env);
  const others = [...sockets, ...inherited];
  const isPortNeeded = others.length + streams.length === 0 || isPortWanted(given);
  return { addresses: isPortNeeded ? [parsePortAddress(given), ...others] : others, streams };
}

export interface ListenPlacesWritten {
  /** Addresses for HTTP. */
  readonly addresses: readonly ListenAddress[];
  readonly streams: readonly WrittenStream[];
}

/**
 * Returns true if a port was asked for, other than in the environment: there, as in our containers, the variables say
 * which port to use, not that there has to be one.
 */
function isPortWanted(given: GivenOptions): boolean {
  const names = ['port', 'host'] as const;
  return names.some((name) => given.isGiven(name) && given.sourceOf(name) !== envNameOf(name));
}

function parsePortAddress(given: GivenOptions): TcpAddress {
  return {
    kind: 'tcp',
    host: given.required('host', value.parseListenHost),
    port: given.required('port', value.parsePort),
  };
}

function parseSockets(given: GivenOptions, { cwd, platform }: RemoteSurroundings): readonly SocketAddress[] {
  const paths = given.list('socket', (text) => parseSocketPath(text, { cwd, platform }));
  const mode = given.required('socket-mode', value.parseFileMode);
  const twice = paths.find((path, index) => paths.indexOf(path) !== index);
  if (twice !== undefined) throw excluded(`${given.sourceOf('socket')} names ${twice} twice; leave one of them out.`);
  return paths.map((path) => ({ kind: 'socket', path, mode }));
}

function parseStreams(given: GivenOptions, { platform }: RemoteSurroundings): readonly WrittenStream[] {
  const mode = given.required('socket-mode', value.parseFileMode);
  const streams = given.list('stream', (text) => parseStream(text, { mode, platform }));
  const shown = streams.map(({ address }) =>
    showStreamAddress(address.kind === 'tcp' ? { ...address, tls: 'off' } : address),
  );
  // Port 0 may be given several times: the system chooses a different port for each.
  const twice = streams.findIndex(
    ({ address }, index) =>
      !(address.kind === 'tcp' && address.port === 0) && shown.indexOf(shown[index] ?? '') !== index,
  );
  if (twice >= 0) throw excluded(`${given.sourceOf('stream')} names ${shown[twice]} twice; leave one of them out.`);
  return streams;
}

function refuseNeedlessMode(given: GivenOptions, sockets: number): void {
  if (sockets > 0 || !given.isGiven('socket-mode')) return;
  throw excluded(
    `${given.sourceOf('socket-mode')} needs --socket, or --stream with a Unix socket: it says who may connect to that.`,
  );
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
