/**
 * Reads a host's configuration file and translates its servers into our own options. docs/reference/config-file.md
 * describes the format, and docs/internals/decisions/0026-configuration-files.md the reasons.
 */
import { basename, dirname, resolve } from 'node:path';
import { BridgeError } from '../../errors.ts';
import type { Environment } from '../parse/servers/child-environment.ts';
import type { ConfigFile, WrittenServer } from './config-file.ts';
import {
  type ConfigNode,
  isSameNode,
  KIND_NAMES,
  type ObjectNode,
  type ParsedTree,
  type Path,
  type Position,
} from './config-tree.ts';
import {
  type Dialect,
  EXPECTED_KEYS,
  findServers,
  isBuiltIn,
  isNotStartedAtOnce,
  isSwitchedOff,
  type Language,
  type ServerList,
} from './dialects.ts';
import { resolvePath } from './entry-context.ts';
import { FileReport, quoteKey } from './file-report.ts';
import { type Readers, readConfigText, readOwnText } from './found-file.ts';
import { PORTAGE, readTopPortage } from './portage-key.ts';
import { type EntryReader, readServer, warnOfUnknownKeys } from './server-entry.ts';
import { type VariableSources, Variables } from './variables.ts';

export interface FileSurroundings extends Readers {
  readonly cwd: string;
  readonly env: Environment;
  readonly homeFolder: string;
}

export const MAX_FILE_BYTES = 4 * 2 ** 20;
const MAX_SERVERS = 1000;
const MAX_NAME_LENGTH = 200;
/** Limits the size of a file that `{file:path}` inserts into a text. */
const MAX_VALUE_BYTES = 64 * 2 ** 10;

/**
 * Throws ERR_CONFIG_FILE with all mistakes that concern the whole file, without values. Mistakes in the entries of
 * single servers are returned.
 */
export async function readConfigFile(written: string, around: FileSurroundings): Promise<ConfigFile> {
  const path = resolve(around.cwd, written);
  const report = new FileReport({ kind: 'file', name: basename(path) });
  const text = readConfigText(path, MAX_FILE_BYTES, around);
  const language = languageOf(path, text);
  const root = await parseTree(language, text, report);
  const found = findServers(root, { path, language, cwd: around.cwd });
  if (found === undefined) {
    throw new BridgeError(
      'ERR_CONFIG_FILE',
      `${basename(path)}: expected servers under ${EXPECTED_KEYS}, as the files of MCP clients have them; got none of these keys.`,
    );
  }
  for (const key of found.shadowed) report.warn('shadowed', [key]);
  for (const key of found.switches) report.warn('switches', [key]);
  const included = new Set<string>();
  const { checkEntry, ENTRY_SHAPE } = await import('./entry-schema.ts');
  const sources = {
    path,
    report,
    around,
    included,
    dialect: found.dialect,
    inputs: readInputs(found.inputs),
    checkEntry,
    knownKeys: new Set(Object.keys(ENTRY_SHAPE)),
  };
  const options = readTopPortage(root.members.get(PORTAGE), createReader(sources));
  const { servers, disabled } = readServers(
    found.lists.map((list) => ({ ...list, reader: createReader(sources, list.folder) })),
    report,
  );
  report.throwMistakesOfFile();
  return {
    path,
    options,
    servers,
    disabled,
    leftOut: report.leftOut(),
    included: [...included],
    warnings: report.warnings(),
  };
}

/** The parsers are separate files in dist/, which are loaded only for a configuration file. */
export async function parseTree(language: Language, text: string, report: FileReport): Promise<ObjectNode> {
  const parsed = await parseText(language, text);
  if (!parsed.ok) {
    for (const { at, problem } of parsed.problems) report.mistake(at, [], problem);
    report.throwMistakes();
  } else if (parsed.root.kind === 'object') return parsed.root;
  else report.mistake(parsed.root.at, [], `expected an object, got ${KIND_NAMES[parsed.root.kind]}.`);
  report.throwMistakes();
  throw new Error('a file that is not an object has a mistake');
}

async function parseText(language: Language, text: string): Promise<ParsedTree> {
  switch (language) {
    case 'json':
      return (await import('./json-tree.ts')).parseJsonTree(text);
    case 'toml':
      return (await import('./toml-tree.ts')).parseTomlTree(text);
    case 'yaml':
      return (await import('./yaml-tree.ts')).parseYamlTree(text);
  }
}

/**
 * Finds the language by the file extension, or else by the beginning of the text. Only JSON begins with a brace, a
 * quote or a comment with a slash. YAML begins with `---` or a key and a colon; TOML with a key and an equals sign, or
 * a bracket.
 */
export function languageOf(path: string, text: string): Language {
  const [, ending = ''] = /\.(jsonc?|toml|ya?ml)$/i.exec(path) ?? [];
  if (ending !== '') return /^json/i.test(ending) ? 'json' : /^toml$/i.test(ending) ? 'toml' : 'yaml';
  if (/^\s*(?:[{"]|\/[/*]|$)/.test(text)) return 'json';
  return /^(?:\s*(?:#[^\n]*)?\n)*(?:---|[\w.-]+\s*:(?:\s|$))/.test(text) ? 'yaml' : 'toml';
}

interface ReaderSources extends Pick<EntryReader, 'checkEntry' | 'knownKeys'> {
  readonly path: string;
  readonly report: FileReport;
  readonly around: FileSurroundings;
  readonly included: Set<string>;
  readonly dialect: Dialect;
  readonly inputs: VariableSources['inputs'];
}

/** @param workspaceFolder by default, the folder that the path of the file implies */
function createReader(
  { path, around, included, inputs, ...sources }: ReaderSources,
  workspaceFolder = workspaceOf(path),
): EntryReader {
  const { env, homeFolder } = around;
  const variables = new Variables({
    env,
    homeFolder,
    workspaceFolder,
    platform: around.platform,
    inputs,
    spelling: sources.dialect.variables,
    readFile: (name) => {
      // In opencode, paths in `{file:…}` are relative to the folder of the file.
      const file = resolvePath(name, { homeFolder, workspaceFolder: dirname(path) });
      included.add(file);
      const read = readOwnText(file, MAX_VALUE_BYTES, around);
      return read.ok ? { ok: true, text: read.text.trim() } : read;
    },
  });
  return {
    ...sources,
    variables,
    readers: around,
    homeFolder,
    workspaceFolder,
    include: (file) => included.add(file),
  };
}

/** Folders in which Kiro and Continue keep the file, within a hidden folder. */
const INNER_FOLDERS: readonly string[] = ['settings', 'mcpServers'];

/** Returns the folder of the file, or the parent of a host's hidden folder such as `.vscode`. */
function workspaceOf(path: string): string {
  const folder = dirname(path);
  const isHidden = (name: string): boolean => basename(name).startsWith('.');
  const outer = INNER_FOLDERS.includes(basename(folder)) && isHidden(dirname(folder)) ? dirname(folder) : folder;
  return isHidden(outer) ? dirname(outer) : folder;
}

/** Reads the default values of VS Code's inputs. Their other keys describe the prompt for the user. */
function readInputs(node: ConfigNode | undefined): ReadonlyMap<string, { readonly default: string | undefined }> {
  const inputs = new Map<string, { readonly default: string | undefined }>();
  for (const item of node?.kind === 'list' ? node.items : []) {
    if (item.kind !== 'object') continue;
    const id = item.members.get('id');
    const fallback = item.members.get('default');
    if (id?.kind === 'text') inputs.set(id.value, { default: fallback?.kind === 'text' ? fallback.value : undefined });
  }
  return inputs;
}

export interface ReadServers {
  readonly servers: readonly WrittenServer[];
  readonly disabled: readonly string[];
}

interface ReadableList extends ServerList {
  readonly reader: EntryReader;
}

/** Returns the servers whose entries are right, and reports the mistakes in all others. */
export function readServers(lists: readonly ReadableList[], report: FileReport): ReadServers {
  const servers: WrittenServer[] = [];
  const disabled: string[] = [];
  /** Taken names, by their URL segments. */
  const taken = new Map<string, TakenSegment>();
  let left = MAX_SERVERS;
  for (const { path, servers: node, reader, isOff } of lists) {
    const entries = entriesOf(node, path, report);
    left -= entries.length;
    if (left < 0) {
      report.mistake(node.at, path, `more than ${MAX_SERVERS} servers.`);
      return { servers, disabled };
    }
    for (const entry of entries) {
      if (entry.node.kind === 'object' && (isSwitchedOff(entry.node) || isOff(entry.name))) disabled.push(entry.name);
      else if (entry.node.kind === 'object' && isBuiltIn(entry.node)) report.warn('builtIn', entry.place);
      else if (isCovered(entry, path, taken)) reportCovered(entry, taken, report);
      else readOne(entry, { path, taken, reader, servers });
    }
  }
  return { servers, disabled };
}

interface NamedEntry {
  readonly name: string;
  readonly node: ConfigNode;
  readonly place: Path;
  /** The position of a second entry with this name; undefined if there is none. */
  readonly repeatedAt: Position | undefined;
}

interface TakenSegment {
  readonly name: string;
  readonly node: ConfigNode;
  /** The path of the list with the entry. */
  readonly path: Path;
}

/** Most hosts have an object with names as keys; Continue has a list. */
export function entriesOf(node: ConfigNode, path: Path, report: FileReport): readonly NamedEntry[] {
  if (node.kind === 'object') {
    const repeated = new Map(node.repeated.map(({ key, at }) => [key, at]));
    return [...node.members].map(([name, member]) => ({
      name,
      node: member,
      place: [...path, name],
      repeatedAt: repeated.get(name),
    }));
  }
  if (node.kind === 'list') {
    return node.items.map((item, index) => {
      const name = item.kind === 'object' ? item.members.get('name') : undefined;
      const place = [...path, index];
      return { name: name?.kind === 'text' ? name.value : '', node: item, place, repeatedAt: undefined };
    });
  }
  report.mistake(node.at, path, `expected an object of names and servers, got ${KIND_NAMES[node.kind]}.`);
  return [];
}

/** Returns true if an earlier list of the file, which has precedence, has a server with this name. */
function isCovered({ name }: NamedEntry, path: Path, taken: ReadonlyMap<string, TakenSegment>): boolean {
  const other = taken.get(toSegment(name) ?? '');
  return other !== undefined && other.path !== path;
}

/**
 * Warns of a server that is not served because of another one with its name. Identical entries need no warning: users
 * of Claude Code often have the same server in many projects.
 */
function reportCovered(
  { name, node, place }: NamedEntry,
  taken: ReadonlyMap<string, TakenSegment>,
  report: FileReport,
): void {
  const other = taken.get(toSegment(name) ?? '');
  if (other === undefined || !isSameNode(node, other.node)) report.warn('project', place);
}

interface ReadingOfList {
  readonly path: Path;
  readonly taken: Map<string, TakenSegment>;
  readonly reader: EntryReader;
  readonly servers: WrittenServer[];
}

function readOne({ name, node, place, repeatedAt }: NamedEntry, { path, taken, reader, servers }: ReadingOfList): void {
  const { report } = reader;
  const read = (): void => {
    const before = report.mistakeCount;
    if (repeatedAt !== undefined) {
      report.mistake(repeatedAt, place, 'stands here a second time; leave one of them out.');
    }
    if (node.kind !== 'object') {
      return report.mistake(node.at, place, `expected an object, got ${KIND_NAMES[node.kind]}.`);
    }
    const segment = readSegment(name, taken);
    if (!segment.ok) report.mistake(node.at, place, segment.problem);
    else taken.set(segment.text, { name, node, path });
    // A server with a wrong name is read as well, so that all mistakes are reported together.
    const server = readServer({ name, segment: segment.ok ? segment.text : '' }, node, place, reader);
    if (server !== undefined && report.mistakeCount === before) servers.push(server);
    warnOfUnknownKeys(node, place, reader);
    if (isNotStartedAtOnce(node)) report.warn('notAtStart', [...place, 'startup']);
  };
  // A required server cannot be left out: the bridge must not start, or report that it is ready, without it.
  if (node.kind === 'object' && isSaidToBeRequired(node)) read();
  else report.ofEntry(name, read);
}

function isSaidToBeRequired({ members }: ObjectNode): boolean {
  const portage = members.get(PORTAGE);
  const own = portage?.kind === 'object' ? portage.members.get('required') : undefined;
  const said = own ?? members.get('required');
  return said?.kind === 'boolean' && said.value;
}

function readSegment(name: string, taken: ReadonlyMap<string, TakenSegment>) {
  if (name.length > MAX_NAME_LENGTH) {
    return { ok: false, problem: `a name of more than ${MAX_NAME_LENGTH} characters; shorten it.` } as const;
  }
  if (name === '') return { ok: false, problem: 'expected a name, got none.' } as const;
  const text = toSegment(name);
  if (text === undefined) {
    return { ok: false, problem: 'nothing of this name can stand in a URL; give it letters or digits.' } as const;
  }
  const other = taken.get(text);
  if (other !== undefined) {
    const problem = `would be served at /${text} like ${quoteKey(other.name)}; rename one of them.`;
    return { ok: false, problem } as const;
  }
  return { ok: true, text } as const;
}

/**
 * Makes a name a segment of a URL from characters that never need escapes. [RFC 3986 2.3] Leading dots are removed:
 * they would make it a relative path or a hidden file. Returns undefined if no character is left.
 */
function toSegment(name: string): string | undefined {
  const segment = name
    .replaceAll(/[^A-Za-z0-9._~-]+/g, '-')
    .replace(/^[-.]+/, '')
    .replace(/-+$/, '');
  return segment === '' ? undefined : segment;
}
