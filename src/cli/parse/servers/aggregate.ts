/** Decides if the servers of a file are also served as one, the aggregate, and parses that server. */
import { collectHeaders, membersOf } from '../../../config/aggregate.ts';
import { AGGREGATE_NAME, type AggregateTarget, type ServerConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import type { BridgeCommand } from '../../command-line.ts';
import type { ConfigFile, WrittenServer } from '../../config-file/config-file.ts';
import { quoteKey } from '../../config-file/file-report.ts';
import { GivenOptions } from '../../options/given-options.ts';
import { type ParsedServer, parseServer, type ServerRequest } from './server.ts';
import { aggregateWithoutFile } from './target.ts';

export type AggregateShows = AggregateTarget['shows'];

/**
 * Returns the tools that the aggregate shows; undefined if there is none. `connect` has room for one server, so that
 * several of a file are the aggregate unless it is switched off. Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION.
 */
export function chooseAggregate(
  given: GivenOptions,
  command: BridgeCommand,
  file: ConfigFile | undefined,
): AggregateShows | undefined {
  const { verb, names, target, options } = command;
  const mode = given.get('aggregate');
  const wanted = mode === 'off' ? undefined : mode;
  const place = given.placeOf('aggregate');
  if (file === undefined) {
    // The variable may be set for other uses.
    if (wanted !== undefined && !given.isFromEnvironment('aggregate')) throw aggregateWithoutFile(place);
    return undefined;
  }
  if (wanted !== undefined && target !== undefined && verb !== 'snippet') {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${place} serves the servers of ${file.path} as one at the paths of this process, and the server of the command line would be served there as well; leave one of them out, or write that server into the file.`,
    );
  }
  // A probe is about each server, unless this run is to be about all as one.
  if (verb === 'probe') return options.has('aggregate') ? wanted : undefined;
  if (verb !== 'connect') return wanted;
  const count = names.length === 0 ? file.servers.length + file.leftOut.length : names.length;
  if (count === 0) return undefined;
  // A server that was asked for by its name is connected to as it is, unless this run is to be different.
  if (count === 1) return names.length === 0 || options.has('aggregate') ? wanted : undefined;
  if (mode !== 'off') return mode ?? 'all';
  const all = file.servers.map(({ name }) => JSON.stringify(name)).join(', ');
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `connect puts one server on stdio, and ${place} keeps it from making one of several: name one of those in ${file.path}, as in\n  mcp-portage connect --config ${file.path} ${file.servers[0]?.name ?? 'NAME'}\nThere are ${all === '' ? 'none' : all}.`,
  );
}

/**
 * Throws ERR_CONFIG_FILE for servers of which clients could not tell the tools apart, and for one with the name that
 * belongs to the aggregate.
 */
export function checkMembers(
  chosen: readonly WrittenServer[],
  { path }: Pick<ConfigFile, 'path'>,
  { verb, names }: Pick<BridgeCommand, 'verb' | 'names'>,
): void {
  const outsider = verb === 'connect' && names.length > 0 && chosen.find(({ membership }) => membership === undefined);
  if (outsider) {
    throw new BridgeError(
      'ERR_CONFIG_FILE',
      `${outsider.place.text}: "portage": {"aggregate": false} leaves this server out of what connect makes of several; remove that, or connect to ${quoteKey(outsider.name)} alone.`,
    );
  }
  const namesake = chosen.find(({ name }) => name === AGGREGATE_NAME);
  if (namesake !== undefined) {
    throw new BridgeError(
      'ERR_CONFIG_FILE',
      `${namesake.place.text}: ${quoteKey(AGGREGATE_NAME)} is the name of the server that all others together are, in lists, logs and metrics; give this one another name.`,
    );
  }
  const owners = new Map<string, WrittenServer>();
  let hasMember = false;
  for (const server of chosen) {
    const { membership } = server;
    if (membership === undefined) continue;
    hasMember = true;
    const { prefix } = membership;
    const owner = owners.get(prefix);
    // Servers without a prefix may have tools of different names.
    if (owner?.membership !== undefined && prefix !== '') {
      throw new BridgeError(
        'ERR_CONFIG_FILE',
        `${membership.place.text}: ${quoteKey(prefix)} would be the prefix of this server's tools, and is that of ${quoteKey(owner.name)} as well (${owner.membership.place.text}); give one of them another portage.prefix.`,
      );
    }
    owners.set(prefix, server);
  }
  if (hasMember || chosen.length === 0) return;
  throw new BridgeError(
    'ERR_CONFIG_FILE',
    `No server of ${path} is part of the aggregate: "portage": {"aggregate": false} leaves each of them out; expected one at least.`,
  );
}

interface AggregateRequest extends Omit<ServerRequest, 'given' | 'target' | 'listing' | 'members' | 'writtenTools'> {
  readonly layers: ConstructorParameters<typeof GivenOptions>[0];
  readonly spelling: GivenOptions['spelling'];
  readonly shows: AggregateShows;
  readonly servers: readonly ServerConfig[];
}

/** Parses the aggregate of these servers. Throws what `parseServer` throws. */
export function parseAggregate({ layers, spelling, shows, servers, ...request }: AggregateRequest): ParsedServer {
  const { verb } = request;
  const given = new GivenOptions(layers, { verb, target: 'aggregate', spelling });
  const target: AggregateTarget = { kind: 'aggregate', shows };
  const parsed = parseServer({
    ...request,
    given,
    target,
    listing: undefined,
    members: membersOf(servers),
    writtenTools: new Map(),
  });
  const { server } = parsed;
  // Patterns, pins and limits of results are about the tools of each server, by their own names, and apply there. The
  // aggregate starts no process of its own.
  const own: ServerConfig = {
    ...server,
    tools: { include: [], exclude: [], shapes: new Map() },
    pinTools: undefined,
    limits: { ...server.limits, maxChildren: 0, maxResultBytes: 0 },
  };
  return { ...parsed, server: collectHeaders(own, servers) };
}
