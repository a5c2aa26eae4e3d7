/** Where serve listens: at a port, at sockets of this machine, and at what whoever started it has opened. */
import type { ListenAddress, SocketAddress, TcpAddress } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import { findInheritedSockets } from '../inherited-sockets.ts';
import type { GivenOptions } from '../options/given-options.ts';
import { envNameOf } from '../options/option-table.ts';
import type { RemoteSurroundings } from './remote.ts';
import { parseSocketPath } from './socket-path.ts';
import * as value from './value.ts';

/**
 * Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. Where there are sockets, nobody needs a port unless it is asked for.
 */
export function parseAddresses(given: GivenOptions, around: RemoteSurroundings): readonly ListenAddress[] {
  const sockets = parseSockets(given, around);
  const inherited = findInheritedSockets(around.env);
  const others = [...sockets, ...inherited];
  return others.length > 0 && !isPortWanted(given) ? others : [parsePortAddress(given), ...others];
}

/** The environment says where a port would be, as in every container of ours, and not that there shall be one. */
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
  if (paths.length === 0 && given.isGiven('socket-mode')) {
    throw excluded(`${given.sourceOf('socket-mode')} needs --socket: it says who may connect to that.`);
  }
  const twice = paths.find((path, index) => paths.indexOf(path) !== index);
  if (twice !== undefined) throw excluded(`${given.sourceOf('socket')} names ${twice} twice; leave one of them out.`);
  return paths.map((path) => ({ kind: 'socket', path, mode }));
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
