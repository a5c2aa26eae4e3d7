/**
 * Parses the servers of a configuration file, with the options that the command line and the environment give for all.
 */
import type { AccessConfig } from '../../../config/access.ts';
import type { Listing } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { showHidden } from '../../../printable.ts';
import type { BridgeCommand } from '../../command-line.ts';
import type { ConfigFile, LeftOutServer, WrittenServer } from '../../config-file/config-file.ts';
import { MAX_MISTAKES, quoteKey } from '../../config-file/file-report.ts';
import { GivenOptions, type WrittenOptions } from '../../options/given-options.ts';
import {
  BEARER_TOKEN_VARIABLE,
  CLIENT_SECRET_VARIABLE,
  OF_ONE_SERVER,
  type OptionName,
} from '../../options/option-table.ts';
import { suggest } from '../../suggest.ts';
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
  readonly written: { readonly commandLine: WrittenOptions; readonly environment: WrittenOptions };
}

/**
 * Parses the servers that the command line selects. A server with a wrong entry is left out, as hosts do, and the
 * others are served. It is an error instead if the user asked for the server by name or for strict reading, if the
 * server is required, or if no server is left. The error then lists all mistakes. Throws ERR_CONFIG_FILE and what
 * `parseServer` throws.
 */
export function parseListed(file: ConfigFile, request: ListedRequest): ParsedList {
  const { command, isStrict } = request;
  const chosen = chooseServers(file, command);
  const isOnlyOne = chosen.length === 1 && command.verb !== 'serve';
  if (!isOnlyOne && command.target === undefined) refuseOptionsOfOne(command, file);
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
    parseOne({ ...server, options: new Map(), callers: undefined }, common);
    return true;
  } catch (thrown) {
    if (thrown instanceof BridgeError) return false;
    throw thrown;
  }
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
  readonly before: readonly WrittenOptions[];
  readonly after: WrittenOptions;
}

function ofOne(file: ConfigFile, { written: { commandLine, environment }, ...request }: ListedRequest): Common {
  return { ...request, before: [commandLine, environment], after: file.options };
}

function ofSeveral(file: ConfigFile, { written, around, ...request }: ListedRequest): Common {
  const before = [written.commandLine, written.environment].map((layer) => without(layer, NOT_OF_EACH));
  const env = withoutCredentials(around.env);
  return { ...request, around: { ...around, env }, before, after: without(file.options, NOT_OF_EACH) };
}

/**
 * Options that apply to single servers only in their entries. Elsewhere, `max-children` limits the processes of all
 * servers together.
 */
const NOT_OF_EACH: readonly OptionName[] = [...OF_ONE_SERVER, 'max-children'];

function parseOne(server: WrittenServer, { before, after, ...common }: Common): ParsedServer {
  const { name, target, options } = server;
  const given = new GivenOptions([...before, options, after], { verb: common.verb, target: target.kind });
  const parsed = parseServer({ ...common, given, target, listing: listingOf(server, common.access) });
  return { ...parsed, warnings: parsed.warnings.map((warning) => `${name}: ${warning}`) };
}

function listingOf({ name, segment, isRequired, callers, source }: WrittenServer, access: AccessConfig): Listing {
  if (callers !== undefined && access.auth === undefined) {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${source}: portage.callers says who may use this server, but callers are not authenticated; add --auth-token or --auth-issuer, or leave portage.callers out.`,
    );
  }
  return {
    name: showHidden(name),
    segment,
    isRequired,
    callers: callers?.map((caller) => principalOf(caller, access)),
  };
}

/** Translates a caller's name: `subject:…` is a subject of the issuer, any other text is the name of a --auth-token. */
function principalOf(caller: string, { auth }: AccessConfig): string {
  const subject = /^subject:(.+)$/s.exec(caller)?.[1];
  return subject === undefined ? `token:${caller}` : `${auth?.oauth?.issuer ?? ''}#${subject}`;
}

/**
 * Returns the servers that the command line names, or all if it names none. Throws ERR_CONFIG_OPTION for a name that is
 * not in the file.
 */
export function chooseServers(
  { servers, disabled, leftOut, path }: ConfigFile,
  { verb, names }: BridgeCommand,
): readonly WrittenServer[] {
  if (verb === 'connect' && names.length !== 1 && servers.length + leftOut.length !== 1) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `connect puts one server on stdio: name one of those in ${path}, as in\n  mcp-portage connect --config ${path} ${servers[0]?.name ?? 'NAME'}\nThere are ${listNames(servers)}.`,
    );
  }
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
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
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

function refuseOptionsOfOne({ options }: BridgeCommand, { path }: ConfigFile): void {
  const wrong = OF_ONE_SERVER.find((name) => options.has(name));
  if (wrong === undefined) return;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `--${wrong} is about one server, and ${path} may hold several; write it into the entry of the server it is for.`,
  );
}

function without(layer: WrittenOptions, names: readonly OptionName[]): WrittenOptions {
  return new Map([...layer].filter(([name]) => !names.includes(name)));
}

/** Removes the credentials that are meant for the single server of a command line. */
function withoutCredentials(env: Environment): Environment {
  return { ...env, [BEARER_TOKEN_VARIABLE]: undefined, [CLIENT_SECRET_VARIABLE]: undefined };
}
