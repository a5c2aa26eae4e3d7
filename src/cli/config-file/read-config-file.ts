/**
 * Reads the configuration file of a host: which servers there are, and what is said of each, in the words of our own
 * options. docs/reference/config-file.md has what may stand in it, docs/internals/decisions/0026-configuration-files.md why it is so.
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

const MAX_FILE_BYTES = 4 * 2 ** 20;
const MAX_SERVERS = 1000;
const MAX_NAME_LENGTH = 200;
/** The most that a file may hold which `{file:path}` puts into a text. */
const MAX_VALUE_BYTES = 64 * 2 ** 10;

/** Throws ERR_CONFIG_FILE with all that is wrong with it, and no values. What is wrong with single servers is returned. */
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

/** The parsers are files of their own in dist/: whoever names no file never loads them. */
async function parseTree(language: Language, text: string, report: FileReport): Promise<ObjectNode> {
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
 * By the end of the name, else by how it begins: only JSON with a brace or a comment between slashes, and YAML with a word
 * and a colon where TOML has a word and an equals sign, or a bracket.
 */
function languageOf(path: string, text: string): Language {
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

/** @param workspaceFolder undefined: found by where the file is */
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
      // opencode means the folder of the file itself.
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

/** Folders of Kiro and Continue, within the folder that begins with a dot. */
const INNER_FOLDERS: readonly string[] = ['settings', 'mcpServers'];

/** The folder of the file, or the one that has the folder of a host in it. */
function workspaceOf(path: string): string {
  const folder = dirname(path);
  const isHidden = (name: string): boolean => basename(name).startsWith('.');
  const outer = INNER_FOLDERS.includes(basename(folder)) && isHidden(dirname(folder)) ? dirname(folder) : folder;
  return isHidden(outer) ? dirname(outer) : folder;
}

/** What VS Code would ask for. Whatever else is said there is about how to ask. */
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

/** Mistakes are reported, and all servers that have none are returned. */
export function readServers(lists: readonly ReadableList[], report: FileReport): ReadServers {
  const servers: WrittenServer[] = [];
  const disabled: string[] = [];
  /** By segments of URLs. */
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
  /** Where the name stands once more; undefined: nowhere. */
  readonly repeatedAt: Position | undefined;
}

interface TakenSegment {
  readonly name: string;
  readonly node: ConfigNode;
  /** The list that it stands in. */
  readonly path: Path;
}

/** Most hosts have names as keys, Continue has a list. */
function entriesOf(node: ConfigNode, path: Path, report: FileReport): readonly NamedEntry[] {
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

/** Whether another list of the file, which has precedence, has a server of that name. */
function isCovered({ name }: NamedEntry, path: Path, taken: ReadonlyMap<string, TakenSegment>): boolean {
  const other = taken.get(toSegment(name) ?? '');
  return other !== undefined && other.path !== path;
}

/** Users of Claude Code have one server in many projects. */
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
    // Read all the same where the name is wrong: all mistakes are told at once.
    const server = readServer({ name, segment: segment.ok ? segment.text : '' }, node, place, reader);
    if (server !== undefined && report.mistakeCount === before) servers.push(server);
    warnOfUnknownKeys(node, place, reader);
    if (isNotStartedAtOnce(node)) report.warn('notAtStart', [...place, 'startup']);
  };
  // A process that would say it is ready, or start, without a server that has to be there breaks a promise.
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
 * A name as one segment of a URL, which means the same wherever it is written and needs no escapes. [RFC 3986 2.3] Dots in
 * front would make it a step in a path, or a hidden file. Undefined: nothing is left of the name.
 */
function toSegment(name: string): string | undefined {
  const segment = name
    .replaceAll(/[^A-Za-z0-9._~-]+/g, '-')
    .replace(/^[-.]+/, '')
    .replace(/-+$/, '');
  return segment === '' ? undefined : segment;
}
