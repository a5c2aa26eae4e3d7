/** The MCP configuration files that people have already: those of Claude, Cursor, VS Code, Gemini, Codex, opencode and others. */
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, extname, resolve } from 'node:path';
import { BridgeError } from '../../errors.ts';
import type { Environment } from '../parse/child-environment.ts';
import type { ConfigFile, WrittenServer } from './config-file.ts';
import { type Document, type Mistake, type Path, type Place, parseDocument, SyntaxMistake } from './document.ts';
import { distrust } from './permissions.ts';
import { nameKind } from './portage-key.ts';
import { readEntry, readTopOptions } from './read-entry.ts';
import type { VariableSources } from './variables.ts';

export interface FileSurroundings {
  readonly cwd: string;
  readonly env: Environment;
  readonly platform: NodeJS.Platform;
  /** Throws for a user without one; default: what the system says. */
  readonly homeFolder?: (() => string) | undefined;
  /** Who else may write the file is not looked at. */
  readonly mayBeWritable: boolean;
}

const MAX_BYTES = 4 * 2 ** 20;
const MAX_SERVERS = 1000;
/** So many are shown of what is wrong, or ignored: the first ones cause the others. */
const MAX_TOLD = 20;

/** Throws ERR_CONFIG_FILE, which tells all that is wrong with the file, and shows no value of it. */
export function readConfigFile(path: string, around: FileSurroundings): ConfigFile {
  const absolute = resolve(around.cwd, path);
  const text = readTrusted(absolute, `--config ${path}`, around);
  return new FileReader(absolute, text, around).read();
}

/** Throws ERR_CONFIG_FILE. */
function readTrusted(path: string, shown: string, { platform, mayBeWritable }: FileSurroundings): string {
  const refuse = (problem: string, cause?: unknown): BridgeError =>
    new BridgeError('ERR_CONFIG_FILE', `${shown} ${problem}.`, cause === undefined ? {} : { cause });
  let text: string;
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) throw refuse('is a directory');
    if (stats.size > MAX_BYTES) throw refuse(`has ${stats.size} bytes; expected at most ${MAX_BYTES}`);
    const reason = mayBeWritable ? undefined : distrust(stats, { platform, uid: process.getuid?.() });
    if (reason !== undefined) {
      throw refuse(
        `${reason}. Where something else keeps others from it, as in a container, say --allow-writable-config`,
      );
    }
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (thrown) {
    if (thrown instanceof BridgeError) throw thrown;
    if (thrown instanceof Error && 'code' in thrown && thrown.code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw refuse(`cannot be read (${String(thrown.code)})`, thrown);
    }
    throw refuse('is no text in UTF-8', thrown);
  }
  return text;
}

/** Where a host keeps its servers, and what is special there. */
interface Dialect {
  readonly section: Path;
  readonly timeout: 'of calls' | 'of the start';
  readonly style: VariableSources['style'];
}

const USUAL = { timeout: 'of calls', style: 'dollar' } as const;
/** The first that is there: the settings of Gemini CLI have an `mcp` beside, which holds no servers. */
const DIALECTS: readonly Dialect[] = [
  { section: ['mcpServers'], ...USUAL },
  { section: ['mcp_servers'], ...USUAL },
  { section: ['servers'], ...USUAL },
  // VS Code as a whole, or opencode from its second version.
  { section: ['mcp', 'servers'], timeout: 'of calls', style: 'either' },
  // Here `timeout` is the time to list the tools.
  { section: ['mcp'], timeout: 'of the start', style: 'braces' },
];

class FileReader {
  readonly #path: string;
  readonly #text: string;
  readonly #around: FileSurroundings;
  readonly #mistakes: Mistake[] = [];
  readonly #unknown: string[] = [];
  readonly #logins: string[] = [];
  readonly #included = new Set<string>();

  constructor(path: string, text: string, around: FileSurroundings) {
    this.#path = path;
    this.#text = text.replace(/^\ufeff/, '');
    this.#around = around;
  }

  read(): ConfigFile {
    const document = this.#parse();
    this.#mistakes.push(...document.mistakes);
    const dialect = this.#findDialect(document);
    const workspaceFolder = workspaceOf(this.#path);
    const variables: VariableSources = {
      env: this.#around.env,
      workspaceFolder,
      userHome: this.#around.homeFolder ?? homedir,
      inputs: inputsOf(document.value, dialect.section),
      style: dialect.style,
      readFile: (path) => this.#include(resolve(workspaceFolder, path.replace(/^~(?=[/\\])/, homedir()))),
    };
    const sourceOf = (path: Path): string => this.#sourceOf(document.placeOf(path), path);
    const mistake = (path: Path, problem: string): void => {
      this.#mistakes.push({ place: document.placeOf(path), path, problem });
    };
    const common = { variables, sourceOf, mistake };
    const options = readTopOptions(partOf(document.value, ['portage']), common);
    const disabled: string[] = [];
    const servers: WrittenServer[] = [];
    const names = Object.entries(partOf(document.value, dialect.section) as object);
    for (const [name, value] of names.slice(0, MAX_SERVERS)) {
      const path = [...dialect.section, name];
      const entry = readEntry(value, path, {
        ...common,
        workspaceFolder,
        timeout: dialect.timeout,
        readEnvFile: (file) => this.#include(file),
        ignored: (key, why) => (why === 'unknown' ? this.#unknown : this.#logins).push(showPath(key)),
      });
      if (entry === 'off') disabled.push(name);
      if (entry === 'off' || entry === undefined) continue;
      const segment = segmentOf(name);
      const twin = servers.find((server) => server.segment === segment);
      if (segment === '') mistake(path, 'this name has nothing that could stand in a URL; give it letters or digits');
      if (twin !== undefined) {
        mistake(path, `${JSON.stringify(twin.name)} has the same address, /${segment}/; give one of them another name`);
      }
      servers.push({ name, segment, ...entry });
    }
    if (names.length > MAX_SERVERS)
      mistake(dialect.section, `${names.length} servers; expected at most ${MAX_SERVERS}`);
    if (this.#mistakes.length > 0) throw this.#refuse();
    const included = [...this.#included];
    return { path: this.#path, options, servers, disabled, included, warnings: this.#warnings() };
  }

  #parse(): Document {
    const isToml = extname(this.#path).toLowerCase() === '.toml' || /^\s*(#|\[)/.test(this.#text);
    try {
      return parseDocument(this.#text, isToml ? 'toml' : 'json');
    } catch (thrown) {
      if (!(thrown instanceof SyntaxMistake)) throw thrown;
      this.#mistakes.push({ place: thrown.place, path: [], problem: thrown.message });
      throw this.#refuse();
    }
  }

  #findDialect({ value, placeOf }: Document): Dialect {
    for (const dialect of DIALECTS) {
      const section = partOf(value, dialect.section);
      if (section === undefined) continue;
      if (isObject(section)) return dialect;
      this.#mistakes.push({
        place: placeOf(dialect.section),
        path: dialect.section,
        problem: `expected an object with a member for each server, got ${nameKind(section)}`,
      });
      throw this.#refuse();
    }
    const expected =
      'mcpServers (Claude, Cursor, Windsurf, Gemini), servers (VS Code), mcp_servers (Codex) or mcp (opencode)';
    const problem = isObject(value)
      ? `no servers are here: expected one of the keys ${expected}`
      : `expected an object, got ${nameKind(value)}`;
    this.#mistakes.push({ place: placeOf([]), path: [], problem });
    throw this.#refuse();
  }

  /** Another file that this one names. What it says is as good as what is said here. */
  #include(path: string): string {
    this.#included.add(path);
    return readTrusted(path, path, this.#around);
  }

  #sourceOf({ line, column }: Place, path: Path): string {
    return `${basename(this.#path)}:${line}:${column} (${showPath(path)})`;
  }

  #refuse(): BridgeError {
    const lines = this.#mistakes.slice(0, MAX_TOLD).map(({ place: { line, column }, path, problem }) => {
      const what = path.length === 0 ? '' : `${showPath(path)}: `;
      return `${basename(this.#path)}:${line}:${column}: ${what}${problem}.`;
    });
    const more = this.#mistakes.length - lines.length;
    return new BridgeError('ERR_CONFIG_FILE', [...lines, ...(more > 0 ? [`And ${more} more.`] : [])].join('\n'));
  }

  #warnings(): readonly string[] {
    const file = basename(this.#path);
    const list = (keys: readonly string[]): string => {
      const more = keys.length - MAX_TOLD;
      return `${keys.slice(0, MAX_TOLD).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    };
    const unknown = `${file}: keys that no known host has, and that do nothing here: ${list(this.#unknown)}`;
    const logins = `${file}: how the host logs in does nothing here (${list(this.#logins)}); for a login of mcp-portage write "portage": { "login": "on-demand" } into the entry`;
    return [...(this.#unknown.length > 0 ? [unknown] : []), ...(this.#logins.length > 0 ? [logins] : [])];
  }
}

/** A project keeps such files in its own folder, or in one that is hidden there. */
function workspaceOf(path: string): string {
  const folder = dirname(path);
  return basename(folder).startsWith('.') ? dirname(folder) : folder;
}

/** What may stand between two slashes of a URL without being written otherwise, and is no way upwards. */
export function segmentOf(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9._~-]+/g, '-').replaceAll(/^[-.]+|-+$/g, '');
}

/** `mcpServers.github.env`, `mcpServers["my files"].args[0]`. */
export function showPath(path: Path): string {
  return path
    .map((key, index) => {
      if (typeof key === 'number') return `[${key}]`;
      if (!/^[\w-]+$/.test(key)) return `[${JSON.stringify(key)}]`;
      return index === 0 ? key : `.${key}`;
    })
    .join('');
}

/** Those of VS Code stand beside the servers. */
function inputsOf(value: unknown, section: Path): ReadonlyMap<string, string | undefined> {
  const inputs = partOf(value, [...section.slice(0, -1), 'inputs']);
  const found = (Array.isArray(inputs) ? inputs : []).flatMap((input: unknown) => {
    const id = partOf(input, ['id']);
    const fallback = partOf(input, ['default']);
    return typeof id === 'string' ? [[id, typeof fallback === 'string' ? fallback : undefined] as const] : [];
  });
  return new Map(found);
}

function partOf(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (part, key) => (isObject(part) && typeof key === 'string' ? part[key] : undefined),
    value,
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
