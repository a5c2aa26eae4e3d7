/**
 * Parses the servers of a configuration file, with the options that the command line and the environment give for all.
 */
import type { AccessConfig } from '../../../config/access.ts';
import type { Listing } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { showHidden } from '../../../printable.ts';
import { suggest } from '../../../suggest.ts';
import type { BridgeCommand } from '../../command-line.ts';
import type { ConfigFile, LeftOutServer, WrittenServer } from '../../config-file/config-file.ts';
import { MAX_MISTAKES, quoteKey } from '../../config-file/file-report.ts';
import { isApplicable, type OptionUse } from '../../options/applicable.ts';
import { GivenOptions, type OptionLayer } from '../../options/given-options.ts';
import {
  BEARER_TOKEN_VARIABLE,
  CLIENT_SECRET_VARIABLE,
  OPTIONS,
  type Option,
  optionOf,
} from '../../options/option-table.ts';
import { principalOf, refuseUnauthenticated } from '../listener/named-callers.ts';
import { type AggregateShows, checkMembers } from './aggregate.ts';
import type { Environment } from './child-environment.ts';
import { type ParsedServer, parseServer, type ServerRequest } from './server.ts';

export interface ParsedList {
  readonly servers: readonly ParsedServer[];
  /** Names of servers that are not served because their entries are wrong. */
  readonly leftOut: readonly string[];
  /** A warning for each server that is left out. */
  readonly warnings: readonly string[];
}

interface ListedRequest extends Pick<ServerRequest, 'verb' | 'access' | 'around' | 'withheld'> {
  readonly command: BridgeCommand;
  /** True if a single wrong entry makes the whole file unusable. */
  readonly isStrict: boolean;
  /** The command line and the environment. */
  readonly process: readonly OptionLayer[];
  readonly spelling: OptionUse['spelling'];
  /** Undefined if the servers are not served as one. */
  readonly aggregate: AggregateShows | undefined;
}

/**
 * Parses the servers that the command line selects. A server with a wrong entry is left out, as hosts do, and the
 * others are served. It is an error instead if the user asked for the server by name or for strict reading, if the
 * server is required, or if no server is left. The error then lists all mistakes. Throws ERR_CONFIG_FILE and what
 * `parseServer` throws.
 */
export function parseListed(file: ConfigFile, request: ListedRequest): ParsedList {
  const { command, isStrict, aggregate } = request;
  const chosen = chooseServers(file, command);
  if (aggregate !== undefined) checkMembers(chosen, file, command);
  const isOnlyOne = chosen.length === 1 && command.verb !== 'serve' && aggregate === undefined;
  if (!isOnlyOne && command.target === undefined) refuseOptionsOfOne(request, file);
  const common = isOnlyOne ? ofOne(file, request) : ofSeveral(file, request);
  const areNamed = command.names.length > 0;
  const wrong: LeftOutServer[] = areNamed && !isStrict ? [] : [...file.leftOut];
  // The purpose of a probe is to find mistakes, so it leaves out no server.
  let mustBeRight = isStrict || areNamed || command.verb === 'probe';
  const servers = chosen.flatMap((server) => {
    try {
      return [parseOne(server, common)];
    } catch (thrown) {
      if (!(thrown instanceof BridgeError)) throw thrown;
      wrong.push({ name: server.name, error: thrown });
      mustBeRight ||= server.isRequired || !isFaultOfEntry(server, common);
      return [];
    }
  });
  if (wrong.length > 0 && (mustBeRight || servers.length === 0)) throw joinErrors(wrong);
  return { servers, leftOut: wrong.map(({ name }) => name), warnings: warnOfLeftOut(wrong) };
}

/**
 * Returns false if the server would be refused even without its options: then the command line, the environment, or the
 * file's options for all servers are wrong.
 */
function isFaultOfEntry(server: WrittenServer, common: Common): boolean {
  try {
    parseOne({ ...server, options: new Map(), callers: undefined, tools: new Map() }, common);
    return true;
  } catch (thrown) {
    if (thrown instanceof BridgeError) return false;
    throw thrown;
  }
}

/** Throws ERR_CONFIG_COMBINATION where files are to be watched, and no server is started that could be restarted. */
export function checkWatch(given: GivenOptions, servers: readonly ParsedServer[], { path }: ConfigFile): void {
  if (!given.isGiven('watch') || given.isFromEnvironment('watch')) return;
  if (servers.some(({ server: { target } }) => target.kind === 'command')) return;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.placeOf('watch')} restarts servers that are started as a command, and ${path} has none that is used; leave it out.`,
  );
}

export function joinErrors(wrong: readonly LeftOutServer[]): BridgeError {
  const [first] = wrong;
  const lines = wrong.flatMap(({ error }) => error.message.split('\n'));
  const more = lines.length > MAX_MISTAKES ? [`… and ${lines.length - MAX_MISTAKES} more.`] : [];
  const message = [...lines.slice(0, MAX_MISTAKES), ...more].join('\n');
  return wrong.length === 1 && first !== undefined
    ? first.error
    : new BridgeError(first?.error.code ?? 'ERR_CONFIG_FILE', message);
}

function warnOfLeftOut(wrong: readonly LeftOutServer[]): readonly string[] {
  const shown = wrong.slice(0, MAX_MISTAKES).map(({ name, error }) => {
    return `The server ${quoteKey(name)} is left out, since its entry is wrong: ${error.message.replaceAll('\n', ' ')}`;
  });
  const more = wrong.length - shown.length;
  return more > 0 ? [...shown, `… and ${more} more servers are left out, since their entries are wrong.`] : shown;
}

/**
 * Input that all servers of the file share. Options are taken from `before` first, then from a server's entry, then
 * from `after`.
 */
interface Common extends Pick<ServerRequest, 'verb' | 'access' | 'around' | 'withheld'> {
  readonly before: readonly OptionLayer[];
  readonly after: OptionLayer;
  readonly spelling: OptionUse['spelling'];
}

function ofOne(file: ConfigFile, { process, ...request }: ListedRequest): Common {
  return { ...request, before: process, after: file.options };
}

function ofSeveral(file: ConfigFile, { process, around, ...request }: ListedRequest): Common {
  const before = process.map(ofEach);
  const env = withoutCredentials(around.env);
  return { ...request, around: { ...around, env }, before, after: ofEach(file.options) };
}

/**
 * Returns the options that apply to each server. Options of one server apply in its entry only. Outside of entries,
 * `maxChildren` limits the processes of all servers together.
 */
function ofEach(layer: OptionLayer): OptionLayer {
  return new Map([...layer].filter(([name]) => !isOfOneServer(optionOf(name)) && name !== 'maxChildren'));
}

function isOfOneServer({ scope }: Option): boolean {
  return scope === 'one-server' || scope === 'entry';
}

function parseOne(server: WrittenServer, { before, after, spelling, ...common }: Common): ParsedServer {
  const { name, target, options } = server;
  const given = new GivenOptions([...(options.has('watch') ? before.map(withoutWatch) : before), options, after], {
    verb: common.verb,
    target: target.kind,
    spelling,
  });
  try {
    const listing = listingOf(server, common.access, given);
    const parsed = parseServer({ ...common, given, target, listing, writtenTools: server.tools });
    return { ...parsed, warnings: parsed.warnings.map((warning) => `${name}: ${warning}`) };
  } catch (thrown) {
    throw thrown instanceof BridgeError ? withOtherProblems(thrown, given.explainAll()) : thrown;
  }
}

/** The files of one server are known best in its entry, which therefore replaces those that are given for all servers. */
function withoutWatch(layer: OptionLayer): OptionLayer {
  return new Map([...layer].filter(([name]) => name !== 'watch'));
}

/** An option that cannot be used is told together with all others of the entry, which would come up one by one. */
function withOtherProblems(error: BridgeError, problems: readonly string[]): BridgeError {
  if (!problems.includes(error.message) || problems.length === 1) return error;
  return new BridgeError(error.code, problems.join('\n'));
}

function listingOf(
  { name, segment, isRequired, callers, membership, place }: WrittenServer,
  access: AccessConfig,
  given: GivenOptions,
): Listing {
  if (callers !== undefined && access.auth === undefined) {
    throw refuseUnauthenticated(given, { place: place.text, key: 'portage.callers', use: 'use this server' });
  }
  return {
    name: showHidden(name),
    segment,
    isRequired,
    callers: callers?.map((caller) => principalOf(caller, access)),
    membership: membership && { prefix: membership.prefix, alwaysShow: membership.alwaysShow },
  };
}

/**
 * Returns the servers that the command line names, or all if it names none. Throws ERR_CONFIG_OPTION for a name that is
 * not in the file.
 */
export function chooseServers(
  { servers, disabled, leftOut, path }: ConfigFile,
  { names, options }: Pick<BridgeCommand, 'names' | 'options'>,
): readonly WrittenServer[] {
  if (names.length === 0) return servers;
  return names.map((name) => {
    const found = servers.find((server) => server.name === name || server.segment === name);
    if (found !== undefined) return found;
    const wrong = leftOut.find((server) => server.name === name);
    if (wrong !== undefined) throw wrong.error;
    if (disabled.includes(name)) {
      throw new BridgeError('ERR_CONFIG_OPTION', `${name} is switched off in ${path}; switch it on there.`);
    }
    const [meant] = suggest(
      name,
      servers.map((server) => server.name),
    );
    const isValue = options.has('aggregate') && name === 'search';
    const near = isValue ? '--aggregate=search' : meant;
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `${path} has no server ${JSON.stringify(name)}.${hint} There are ${listNames(servers)}.`,
    );
  });
}

function listNames(servers: readonly Pick<WrittenServer, 'name'>[]): string {
  return servers.length === 0 ? 'none' : servers.map(({ name }) => JSON.stringify(name)).join(', ');
}

export function explainNoServer(file: ConfigFile | undefined): string {
  if (file === undefined) return 'No server is given.';
  const { path, disabled } = file;
  if (disabled.length === 0) return `${path} names no servers; expected one at least.`;
  return `All servers in ${path} are switched off (${disabled.join(', ')}); expected one at least that is not.`;
}

/** The aggregate is one server, too: it can be offered at a hub. */
function refuseOptionsOfOne(
  { command: { verb, options }, aggregate }: Pick<ListedRequest, 'command' | 'aggregate'>,
  { path }: ConfigFile,
): void {
  const isOfAggregate = (option: Option): boolean =>
    aggregate !== undefined && isApplicable(option, { verb, target: 'aggregate' });
  const wrong = OPTIONS.find((option) => isOfOneServer(option) && !isOfAggregate(option) && options.has(option.name));
  if (wrong === undefined) return;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${wrong.flag} is about one server, and ${path} may hold several; write it into the entry of the server it is for.`,
  );
}

/** Removes the credentials that are meant for the single server of a command line. */
function withoutCredentials(env: Environment): Environment {
  return { ...env, [BEARER_TOKEN_VARIABLE]: undefined, [CLIENT_SECRET_VARIABLE]: undefined };
}
