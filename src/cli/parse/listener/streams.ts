/** Assigns each byte stream, and each port for gRPC, to the server that its clients are for. */
import type { GrpcConfig, StreamConfig } from '../../../config/listener.ts';
import { AGGREGATE_NAME, type ServerConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { showStreamAddress } from '../../../http/socket-addresses.ts';
import { suggest } from '../../../suggest.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { NamedGrpc, NamedStream } from './listen-addresses.ts';

type Named = Pick<ServerConfig, 'listing'> & Partial<Pick<ServerConfig, 'target'>>;

function isAggregate({ target }: Named): boolean {
  return target?.kind === 'aggregate';
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function leadStreams(
  streams: readonly NamedStream[],
  servers: readonly Named[],
  given: GivenOptions,
): readonly StreamConfig[] {
  const source = given.placeOf('stream');
  return streams.map(({ name, address }) => {
    const shown = `${source} ${showStreamAddress(address.kind === 'tcp' ? { ...address, tls: 'off' } : address)}`;
    const example = (server: string): string => `${given.nameOf('stream')} ${server}=tcp://127.0.0.1:9000`;
    const listing = findServer(name, servers, { shown, example })?.listing;
    if (listing?.callers !== undefined) {
      throw excluded(
        `${shown} leads to ${listing.name}, which only named callers may use (portage.callers), and on a byte stream nobody has a name; leave one of them out.`,
      );
    }
    return { address, segment: listing?.segment };
  });
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function leadGrpc(
  ports: readonly NamedGrpc[],
  servers: readonly Named[],
  given: GivenOptions,
): readonly GrpcConfig[] {
  return ports.map(({ name, address }) => {
    const shown = `${given.placeOf('grpc')} ${address.host}:${address.port}`;
    const example = (server: string): string => `${given.nameOf('grpc')} ${server}=127.0.0.1:50051`;
    return { address, segment: findServer(name, servers, { shown, example })?.listing?.segment };
  });
}

interface Place {
  /** The option with its value, as messages show it. */
  readonly shown: string;
  /** Shows how the server with this name is chosen. */
  readonly example: (server: string) => string;
}

function findServer(name: string | undefined, servers: readonly Named[], { shown, example }: Place): Named | undefined {
  const names = servers.flatMap(({ listing }) => (listing === undefined ? [] : [listing.name]));
  if (name === undefined || (name === AGGREGATE_NAME && servers.some(isAggregate))) {
    const own = servers.find(({ listing }) => listing === undefined);
    if (own !== undefined || servers.length === 1) return own ?? servers[0];
    throw excluded(
      `${shown} leads to one server, and there are several: say which, as in ${example(names[0] ?? '')}. There are ${names.join(', ')}.`,
    );
  }
  const found = servers.find(({ listing }) => listing?.name === name || listing?.segment === name);
  if (found !== undefined) return found;
  const [meant] = suggest(name, names);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  const known =
    names.length === 0 ? 'The one server here has no name; leave it out.' : `There are ${names.join(', ')}.`;
  throw new BridgeError('ERR_CONFIG_OPTION', `${shown}: there is no server ${JSON.stringify(name)}.${hint} ${known}`);
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
