/**
 * Finds the URLs for a host's configuration: a URL from the command line, or the addresses at which `serve` would
 * listen.
 */
import type { HttpListenerConfig } from '../../../config/listener.ts';
import { AGGREGATE_NAME } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { isWildcard } from '../../../http/addresses.ts';
import { addressBase, boundAddress } from '../../../http/server/listen-addresses.ts';
import {
  HOSTS,
  type HostName,
  nameForHosts,
  type ServedFile,
  type SnippetServer,
  servedFileOf,
} from '../../../snippet.ts';
import type { BridgeCommand } from '../../command-line.ts';
import type { ConfigFile } from '../../config-file/config-file.ts';
import { refuseInapplicable } from '../../options/applicable.ts';
import { GivenOptions, readProcess } from '../../options/given-options.ts';
import { parseListener } from '../listener/listener.ts';
import { checkMembers, chooseAggregate } from './aggregate.ts';
import { chooseServers, joinErrors } from './listed-servers.ts';
import type { RemoteSurroundings } from './remote.ts';

export interface SnippetRequest {
  /** The hosts to print a snippet for: the chosen one, or all. */
  readonly hosts: readonly HostName[];
  readonly servers: readonly SnippetServer[];
  readonly file: ServedFile;
}

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseSnippet(
  command: BridgeCommand,
  around: RemoteSurroundings,
  file: ConfigFile | undefined,
): SnippetRequest {
  const { target, options } = command;
  const use = { verb: 'snippet', target: 'any', spelling: 'flags' } as const;
  refuseInapplicable(options, use);
  const given = new GivenOptions([...readProcess(options, around), file?.options ?? new Map()], use);
  const host = given.get('for');
  const about = { hosts: host === undefined ? HOSTS : [host], file: servedFileOf(file?.path) };
  if (target !== undefined && target.kind !== 'url') {
    throw refuse('snippet takes the address where a server is served, or --config with the file that is served.');
  }
  const { listener } = parseListener(given, around, 'no');
  const token = asksForToken(listener) ? 'needed' : 'none';
  if (target !== undefined) return { ...about, servers: [serverAt(target.url, listener, token)] };
  const base = baseOf(listener);
  const { path } = listener.endpoints;
  const ownServer: SnippetServer = { name: OWN_NAME, url: `${base}${path}`, transport: 'streamable-http', token };
  if (file === undefined) {
    chooseAggregate(given, command, file);
    return { ...about, servers: [ownServer] };
  }
  if (file.leftOut.length > 0 && given.get('strictConfig')) throw joinErrors(file.leftOut);
  const chosen = chooseServers(file, command);
  if (chooseAggregate(given, command, file) !== undefined) {
    checkMembers(chosen, file, command);
    return { ...about, servers: [{ ...ownServer, name: AGGREGATE_NAME }] };
  }
  const segments = chosen.map(({ segment }) => segment);
  const names = nameForHosts(segments);
  const servers = segments.map(
    (segment, index): SnippetServer => ({
      name: names[index] as string,
      url: `${base}/${segment}${path}`,
      transport: 'streamable-http',
      token,
    }),
  );
  return { ...about, servers };
}

/** The name of a server whose address contains none. */
const OWN_NAME = 'mcp-portage';

/** Returns true if hosts must be configured with a token. With an issuer they log in by themselves. */
function asksForToken({ access: { auth } }: HttpListenerConfig): boolean {
  return auth !== undefined && auth.oauth === undefined;
}

/** Returns the address for clients on this machine, unless --base-url gives one. */
function baseOf({ addresses, tls, endpoints: { baseUrl } }: HttpListenerConfig): string {
  if (baseUrl !== undefined) return baseUrl.href.replace(/\/$/, '');
  const [address] = addresses.map(boundAddress);
  if (address === undefined) throw refuse('Nothing is served over HTTP; give a --port, a --socket, or --base-url.');
  if (address.kind === 'socket') return addressBase(address, tls);
  if (address.port === 0) {
    throw refuse('With --port 0 the system chooses a port at each start; give one, or --base-url.');
  }
  return addressBase(isWildcard(address.host) ? { ...address, host: '127.0.0.1' } : address, tls);
}

function serverAt(url: URL, { endpoints }: HttpListenerConfig, token: SnippetServer['token']): SnippetServer {
  const path = url.pathname.replace(/\/+$/, '');
  const isSse = path.endsWith(endpoints.ssePath);
  const before = path.split('/').at(-2);
  const name = before === undefined || before === '' ? OWN_NAME : before;
  return {
    name: nameForHosts([name])[0] as string,
    url: url.href,
    transport: isSse ? 'http-sse' : 'streamable-http',
    token,
  };
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
