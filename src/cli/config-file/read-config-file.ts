/**
 * Reads the configuration file of a host: which servers there are, and what is said of each, in the words of our own
 * options. docs/reference/config-file.md has what may stand in it, docs/internals/decisions/0026-configuration-files.md why it is so.
 */
import { basename, dirname, resolve } from 'node:path';
import { BridgeError } from '../../errors.ts';
import type { Environment } from '../parse/servers/child-environment.ts';
import type { ConfigFile, WrittenServer } from './config-file.ts';
import { type ConfigNode, KIND_NAMES, type ObjectNode, type ParsedTree } from './config-tree.ts';
import { EXPECTED_KEYS, type FoundServers, findServers } from './dialects.ts';
import { reportRepeated, resolvePath } from './entry-context.ts';
import { FileReport, quoteKey } from './file-report.ts';
import { type Readers, readConfigText, readOwnText } from './found-file.ts';
import { PORTAGE, readTopPortage } from './portage-key.ts';
import { type EntryReader, readServer, warnOfUnknownKeys } from './server-entry.ts';
import { Variables } from './variables.ts';

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

/** Throws ERR_CONFIG_FILE with all that is wrong with it, and no values. */
export async function readConfigFile(written: string, around: FileSurroundings): Promise<ConfigFile> {
  const path = resolve(around.cwd, written);
  const report = new FileReport({ kind: 'file', name: basename(path) });
  const root = await parseTree(path, readConfigText(path, MAX_FILE_BYTES, around), report);
  const found = findServers(root);
  if (found === undefined) {
    throw new BridgeError(
      'ERR_CONFIG_FILE',
      `${basename(path)}: expected servers under ${EXPECTED_KEYS}, as the files of MCP clients have them; got none of these keys.`,
    );
  }
  for (const key of found.shadowed) report.warn('shadowed', [key]);
  const included = new Set<string>();
  const reader = await createReader(path, found, report, around, included);
  const options = readTopPortage(root.members.get(PORTAGE), reader);
  const { servers, disabled } = readServers(found, reader);
  report.throwMistakes();
  return { path, options, servers, disabled, included: [...included], warnings: report.warnings() };
}

/** The parsers are files of their own in dist/: whoever names no file never loads them. */
async function parseTree(path: string, text: string, report: FileReport): Promise<ObjectNode> {
  const parsed: ParsedTree = isToml(path, text)
    ? (await import('./toml-tree.ts')).parseTomlTree(text)
    : (await import('./json-tree.ts')).parseJsonTree(text);
  if (!parsed.ok) {
    for (const { at, problem } of parsed.problems) report.mistake(at, [], problem);
    report.throwMistakes();
  } else if (parsed.root.kind === 'object') return parsed.root;
  else report.mistake(parsed.root.at, [], `expected an object, got ${KIND_NAMES[parsed.root.kind]}.`);
  report.throwMistakes();
  throw new Error('a file that is not an object has a mistake');
}

/** By the end of the name, else by how it begins: only JSON with a brace or a comment between slashes. */
function isToml(path: string, text: string): boolean {
  if (/\.toml$/i.test(path)) return true;
  return !/\.jsonc?$/i.test(path) && !/^\s*(?:[{"]|\/[/*]|$)/.test(text);
}

async function createReader(
  path: string,
  found: FoundServers,
  report: FileReport,
  around: FileSurroundings,
  included: Set<string>,
): Promise<EntryReader> {
  const { checkEntry, ENTRY_SHAPE } = await import('./entry-schema.ts');
  const { env, homeFolder } = around;
  const folder = dirname(path);
  const workspaceFolder = basename(folder).startsWith('.') ? dirname(folder) : folder;
  const variables = new Variables({
    env,
    homeFolder,
    workspaceFolder,
    platform: around.platform,
    inputs: readInputs(found.inputs),
    spelling: found.dialect.variables,
    readFile: (name) => {
      // opencode means the folder of the file itself.
      const file = resolvePath(name, { homeFolder, workspaceFolder: folder });
      included.add(file);
      const read = readOwnText(file, MAX_VALUE_BYTES, around);
      return read.ok ? { ok: true, text: read.text.trim() } : read;
    },
  });
  return {
    report,
    variables,
    readers: around,
    homeFolder,
    workspaceFolder,
    include: (file) => included.add(file),
    dialect: found.dialect,
    checkEntry,
    knownKeys: new Set(Object.keys(ENTRY_SHAPE)),
  };
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

/** Mistakes are reported, and all servers that have none are returned. */
export function readServers(
  { path, servers: node }: Pick<FoundServers, 'path' | 'servers'>,
  reader: EntryReader,
): ReadServers {
  const { report } = reader;
  const servers: WrittenServer[] = [];
  const disabled: string[] = [];
  if (node.kind !== 'object') {
    report.mistake(node.at, path, `expected an object of names and servers, got ${KIND_NAMES[node.kind]}.`);
    return { servers, disabled };
  }
  if (node.members.size > MAX_SERVERS) {
    report.mistake(node.at, path, `more than ${MAX_SERVERS} servers.`);
    return { servers, disabled };
  }
  reportRepeated(node, path, reader);
  const nameOfSegment = new Map<string, string>();
  for (const [name, entry] of node.members) {
    const place = [...path, name];
    if (entry.kind !== 'object') {
      report.mistake(entry.at, place, `expected an object, got ${KIND_NAMES[entry.kind]}.`);
    } else if (isSwitchedOff(entry)) disabled.push(name);
    else {
      const segment = readSegment(name, nameOfSegment);
      if (!segment.ok) report.mistake(entry.at, place, segment.problem);
      // Read all the same where the name is wrong: all mistakes are told at once.
      const server = readServer({ name, segment: segment.ok ? segment.text : '' }, entry, place, reader);
      if (server !== undefined) servers.push(server);
      warnOfUnknownKeys(entry, place, reader);
    }
  }
  return { servers, disabled };
}

function isSwitchedOff({ members }: ObjectNode): boolean {
  const disabled = members.get('disabled');
  const enabled = members.get('enabled');
  return (disabled?.kind === 'boolean' && disabled.value) || (enabled?.kind === 'boolean' && !enabled.value);
}

function readSegment(name: string, nameOfSegment: Map<string, string>) {
  if (name.length > MAX_NAME_LENGTH) {
    return { ok: false, problem: `a name of more than ${MAX_NAME_LENGTH} characters; shorten it.` } as const;
  }
  const text = toSegment(name);
  if (text === undefined) {
    return { ok: false, problem: 'nothing of this name can stand in a URL; give it letters or digits.' } as const;
  }
  const other = nameOfSegment.get(text);
  if (other !== undefined) {
    const problem = `would be served at /${text} like ${quoteKey(other)}; rename one of them.`;
    return { ok: false, problem } as const;
  }
  nameOfSegment.set(text, name);
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
