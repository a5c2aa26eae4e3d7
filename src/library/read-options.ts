/** Converts a program's options to the Config, using the parsers of the command line and of configuration files. */
import { homedir } from 'node:os';
import { checkFiles, readTextFile } from '../cli/check-files.ts';
import type { ConfigFile, WrittenServer } from '../cli/config-file/config-file.ts';
import type { ConfigNode, ObjectNode, Path } from '../cli/config-file/config-tree.ts';
import { FileReport } from '../cli/config-file/file-report.ts';
import { readingContextOf, readTopPortage } from '../cli/config-file/portage-key.ts';
import { readServers } from '../cli/config-file/read-config-file.ts';
import type { EntryReader } from '../cli/config-file/server-entry.ts';
import { isApplicable } from '../cli/options/applicable.ts';
import { type GivenOption, type OptionLayer, readValue } from '../cli/options/given-options.ts';
import { ENV_PREFIX } from '../cli/options/option-names.ts';
import { type OptionName, optionOf } from '../cli/options/option-table.ts';
import { type ParsedConfig, parseConfig, type Surroundings } from '../cli/parse/config.ts';
import type { Config } from '../config.ts';
import { BridgeError } from '../errors.ts';
import { readFileOnDisk } from '../io/bounded-file.ts';
import { toTree } from './value-tree.ts';

/** The function of the library that gets the options. */
export type LibraryVerb = 'serve' | 'connect' | 'probe';

export interface ReadOptions extends Pick<ParsedConfig, 'config' | 'probe' | 'warnings'> {}

/** The keys of an entry that the library documents. Keys that only hosts define have no meaning here. */
const ENTRY_KEYS = ['type', 'command', 'args', 'env', 'envFile', 'cwd', 'url', 'headers', 'disabled'];
/** The name of a single server, if it needs one. */
const ONLY = 'server';
const OF_SEVERAL = 'aggregate: expected `servers`, of which it makes one; got `server`. Leave one of them out.';
const NO_COMMAND_LINE = { kind: 'bridge', target: undefined, names: [], options: new Map() } as const;

/**
 * @param given `server` or `servers`, and options by their names in camel case; nothing else
 *
 * @param timeout of a probe; undefined if not given
 *
 * @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION, with the library's option names
 */
export async function readOptions(
  verb: LibraryVerb,
  given: object,
  timeout?: number | string | undefined,
): Promise<ReadOptions> {
  if (typeof given !== 'object' || given === null) {
    throw new BridgeError('ERR_CONFIG_OPTION', 'Expected an object of options; got something else.');
  }
  const tree = toTree(given, '');
  const { server, servers, settings } = splitMembers(tree);
  const reader = await createReader();
  const options = new Map(readTopPortage(settings, reader, []));
  const listed = server === undefined ? readAll(servers, ['servers'], reader) : readAll(onlyServer(server), [], reader);
  reader.report.throwMistakes();
  if (listed.servers.length === 0) throw new BridgeError('ERR_CONFIG_OPTION', explainNone(server === undefined));
  refuseInapplicable(options.keys(), verb);
  if (server !== undefined && options.has('aggregate')) throw new BridgeError('ERR_CONFIG_COMBINATION', OF_SEVERAL);
  if (timeout !== undefined) {
    const read = readValue(optionOf('timeout'), String(timeout), 'field', readingContextOf(reader));
    options.set('timeout', { place: { kind: 'field', text: 'timeout' }, values: [read] });
  }
  for (const [name, quiet] of QUIET) if (!isWanted(name, options, listed.servers)) options.set(name, quiet);
  const file: ConfigFile = {
    path: 'the options',
    options,
    ...listed,
    leftOut: [],
    included: [],
    warnings: reader.report.warnings(),
  };
  const around: Surroundings = {
    env: environmentOfServers(),
    cwd: process.cwd(),
    platform: process.platform,
    stderrIsTerminal: false,
    readFile: readTextFile,
    spelling: 'fields',
  };
  const parsed = parseConfig({ ...NO_COMMAND_LINE, verb }, around, file);
  const config = server === undefined ? parsed.config : withoutNames(parsed.config);
  const found = await checkFiles(config, parsed.given);
  return { config, probe: parsed.probe, warnings: [...parsed.warnings, ...found] };
}

interface Members {
  /** The only server; undefined if there are several. */
  readonly server: ConfigNode | undefined;
  readonly servers: ConfigNode;
  /** All other options. */
  readonly settings: ObjectNode;
}

function splitMembers(tree: ObjectNode): Members {
  const { server, servers, ...rest } = Object.fromEntries(tree.members);
  if ((server === undefined) === (servers === undefined)) {
    const got = server === undefined ? 'neither' : 'both';
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `Expected \`server\` for one server or \`servers\` for several; got ${got}.`,
    );
  }
  const settings = { ...tree, members: new Map(Object.entries(rest)) };
  return { server, servers: servers ?? tree, settings };
}

async function createReader(): Promise<EntryReader> {
  const { checkEntry } = await import('../cli/config-file/entry-schema.ts');
  return {
    report: new FileReport({ kind: 'options' }),
    // Variables are not expanded: the program can do that itself, and `${NAME}` may come from text that its user did
    // not write.
    variables: { expand: (text) => ({ ok: true, text }) },
    // Permissions of files are not checked, because the program itself names them.
    readers: { platform: process.platform, uid: process.getuid?.(), readFile: readFileOnDisk, mayBeWritable: true },
    homeFolder: homedir(),
    workspaceFolder: process.cwd(),
    include: () => undefined,
    dialect: { variables: 'common', timeout: 'call', http: 'streamable-http' },
    checkEntry,
    knownKeys: new Set(ENTRY_KEYS),
  };
}

function readAll(servers: ConfigNode, path: Path, reader: EntryReader) {
  return readServers([{ path, servers, folder: undefined, isOff: () => false, reader }], reader.report);
}

function onlyServer(server: ConfigNode): ConfigNode {
  return { kind: 'object', at: server.at, members: new Map([[ONLY, server]]), repeated: [] };
}

function explainNone(areSeveral: boolean): string {
  return areSeveral
    ? 'servers: expected one at least that is not disabled; got none.'
    : 'server: it is disabled, and there is no other.';
}

function refuseInapplicable(names: Iterable<OptionName>, verb: LibraryVerb): void {
  for (const name of names) {
    if (isApplicable(optionOf(name), { verb, target: 'any' })) continue;
    throw new BridgeError('ERR_CONFIG_COMBINATION', `${name} has no meaning for ${verb}; leave it out.`);
  }
}

/**
 * Defaults for programs: without the option no browser is opened and no status page is added to the program's own
 * pages.
 */
const QUIET: OptionLayer = new Map([
  ['login', quietly('login', 'never')],
  ['status', quietly('status', false)],
]);

function quietly(name: OptionName, value: unknown): GivenOption {
  return { place: { kind: 'field', text: name }, values: [{ ok: true, value }] };
}

function isWanted(name: OptionName, options: OptionLayer, servers: readonly WrittenServer[]): boolean {
  const names = [options, ...servers.map((server) => server.options)].flatMap((layer) => [...layer.keys()]);
  return names.some((other) => other === name || (name === 'login' && other.startsWith('oauth')));
}

/** Variables that configure the command line do not apply to a program, which has options. */
function environmentOfServers(): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith(ENV_PREFIX)));
}

/** A single server is served at the paths of the bridge itself. */
function withoutNames(config: Config): Config {
  const [server] = config.servers;
  return { ...config, servers: [{ ...server, listing: undefined }] };
}
