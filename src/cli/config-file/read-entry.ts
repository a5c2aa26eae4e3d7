/** One entry of a configuration file, in the words of our own options. */
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import type { Target } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import type { WrittenOption, WrittenOptions } from '../options/given-options.ts';
import type { OptionName } from '../options/option-table.ts';
import { parseServerUrl } from '../parse/target.ts';
import type { WrittenServer } from './config-file.ts';
import type { Path } from './document.ts';
import { HARMLESS, HOST_LOGIN } from './host-keys.ts';
import { nameKind, readOption } from './portage-key.ts';
import { ENTRY, ENTRY_MEMBERS, TYPES } from './schema.ts';
import { expandVariables, type VariableSources } from './variables.ts';

/** What reading an entry needs of the file that it is in. */
export interface EntryParts {
  readonly variables: VariableSources;
  /** Relative paths are relative to it. */
  readonly workspaceFolder: string;
  /** How `timeout` is meant: for calls, or for something else. */
  readonly timeout: 'of calls' | 'of the start';
  /** The text of a file with variables; throws what the system says, or why it is not trusted. */
  readonly readEnvFile: (path: string) => string;
  readonly sourceOf: (path: Path) => string;
  readonly mistake: (path: Path, problem: string) => void;
  /** A key that nobody knows, or that does nothing here. */
  readonly ignored: (path: Path, why: 'unknown' | 'login of the host') => void;
}

/** `off`: it is there, but not to be served. Undefined: it is wrong, and what is wrong was said. */
export type ReadEntry = Omit<WrittenServer, 'name' | 'segment'> | 'off' | undefined;

export function readEntry(value: unknown, path: Path, parts: EntryParts): ReadEntry {
  const reader = new EntryReader(path, parts);
  return reader.read(value);
}

/** Where it stands is found out for a message, of which there are mostly none. */
class OptionInFile implements WrittenOption {
  readonly texts: readonly string[];
  readonly #path: Path;
  readonly #sourceOf: EntryParts['sourceOf'];

  constructor(texts: readonly string[], path: Path, sourceOf: EntryParts['sourceOf']) {
    this.texts = texts;
    this.#path = path;
    this.#sourceOf = sourceOf;
  }

  get source(): string {
    return this.#sourceOf(this.#path);
  }
}

type Entry = ReturnType<typeof ENTRY.parse>;

class EntryReader {
  readonly #path: Path;
  readonly #parts: EntryParts;
  readonly #options = new Map<OptionName, WrittenOption>();
  #isWrong = false;

  constructor(path: Path, parts: EntryParts) {
    this.#path = path;
    this.#parts = parts;
  }

  read(value: unknown): ReadEntry {
    const checked = ENTRY.safeParse(value);
    if (!checked.success) {
      for (const issue of checked.error.issues) {
        const path = [...this.#path, ...(issue.path as Path)];
        this.#mistake(path, `expected ${issue.message}, got ${nameKind(partOf(value, issue.path as Path))}`);
      }
      return undefined;
    }
    const entry = checked.data;
    if (entry.disabled === true || entry.enabled === false) return 'off';
    this.#tellIgnored(entry);
    const target = this.#readTarget(entry);
    if (target?.kind === 'command') this.#readChild(entry);
    if (target?.kind === 'url') this.#readHeaders(entry);
    this.#readCommon(entry);
    const { isRequired, callers } = this.#readPortage(entry);
    if (target === undefined || this.#isWrong) return undefined;
    const source = this.#parts.sourceOf(this.#path);
    return { source, target, options: this.#options, isRequired: isRequired ?? entry.required === true, callers };
  }

  // ---- where the server is

  #readTarget(entry: Entry): Target | undefined {
    const { command, url, serverUrl, httpUrl } = entry;
    const urls = Object.entries({ url, serverUrl, httpUrl }).filter(([, text]) => text !== undefined);
    const [[key, text] = [], ...more] = urls;
    if (more.length > 0 && httpUrl === undefined)
      return this.#mistake([...this.#path, 'serverUrl'], 'url stands here, too; leave one of them out');
    if (command !== undefined && key !== undefined) {
      return this.#mistake([...this.#path, key], 'command stands here, too; a server is started or reached, not both');
    }
    const type = this.#readType(entry);
    if (command !== undefined) {
      if (type !== undefined && type !== 'command')
        return this.#mistake([...this.#path, 'type'], 'this is a type of servers with a url, but there is a command');
      return this.#readCommand(command, entry);
    }
    if (key === undefined || text === undefined) {
      return this.#mistake(this.#path, 'expected a command or a url; got neither');
    }
    if (type === 'command')
      return this.#mistake([...this.#path, 'type'], 'this is the type of servers with a command, but there is a url');
    // Gemini CLI tells its transports by the key, and prefers this one.
    if (httpUrl !== undefined) this.#set('transport', ['streamable-http'], ['httpUrl']);
    else if (type !== undefined && type !== 'auto') this.#set('transport', [type], ['type']);
    return this.#readUrl(httpUrl === undefined ? text : httpUrl, httpUrl === undefined ? key : 'httpUrl');
  }

  #readType({ type, transport }: Entry): (typeof TYPES)[keyof typeof TYPES] | undefined {
    const [key, word] = type === undefined ? (['transport', transport] as const) : (['type', type] as const);
    if (word === undefined) return undefined;
    const known = Object.entries(TYPES).find(([name]) => name === word);
    if (known !== undefined) return known[1];
    return this.#mistake([...this.#path, key], `expected one of ${Object.keys(TYPES).join(', ')}`);
  }

  #readCommand(command: string | readonly string[], { args = [] }: Entry): Target | undefined {
    const words = typeof command === 'string' ? [command] : command;
    const path = [...this.#path, 'command'];
    const [program, ...more] = words.map((word, index) =>
      this.#expand(word, typeof command === 'string' ? path : [...path, index]),
    );
    const all = [...more, ...args.map((arg, index) => this.#expand(arg, [...this.#path, 'args', index]))];
    if (program === undefined || program === '')
      return this.#mistake(path, 'expected the program to start; got nothing');
    return { kind: 'command', command: program, args: all };
  }

  #readUrl(text: string, key: string): Target | undefined {
    const path = [...this.#path, key];
    try {
      return { kind: 'url', url: parseServerUrl(this.#expand(text, path)) };
    } catch (thrown) {
      if (!(thrown instanceof BridgeError)) throw thrown;
      return this.#mistake(path, thrown.message.replace(/\.$/, ''));
    }
  }

  // ---- how it is started, or what it is sent

  #readChild({ env, environment, env_vars: copied, envFile, cwd }: Entry): void {
    const { workspaceFolder } = this.#parts;
    const fromFile = envFile === undefined ? [] : this.#readEnvFile(envFile);
    const key = environment === undefined ? 'env' : 'environment';
    const own = Object.entries(environment ?? env ?? {}).map(
      ([name, value]) => `${name}=${this.#expand(String(value), [...this.#path, key, name])}`,
    );
    const names = (copied ?? []).map((variable) => (typeof variable === 'string' ? variable : variable.name));
    const present = names.filter((name) => this.#parts.variables.env[name] !== undefined);
    this.#set('env', [...fromFile, ...present, ...own], [key]);
    const folder = cwd === undefined ? workspaceFolder : this.#pathOf(cwd, 'cwd');
    this.#set('cwd', [folder], cwd === undefined ? [] : ['cwd']);
  }

  #readEnvFile(text: string): readonly string[] {
    const path = this.#pathOf(text, 'envFile');
    try {
      const variables = parseEnv(this.#parts.readEnvFile(path));
      return Object.entries(variables).map(([name, value]) => `${name}=${value ?? ''}`);
    } catch (cause) {
      if (!(cause instanceof Error)) throw cause;
      const why = 'code' in cause ? `it cannot be read (${String(cause.code)})` : cause.message;
      this.#mistake([...this.#path, 'envFile'], why);
      return [];
    }
  }

  /** Absolute. */
  #pathOf(text: string, key: string): string {
    const expanded = this.#expand(text, [...this.#path, key]);
    const { workspaceFolder, variables } = this.#parts;
    const inHome = /^~(?:[/\\](.*))?$/s.exec(expanded);
    return inHome === null ? resolve(workspaceFolder, expanded) : resolve(variables.userHome(), inHome[1] ?? '');
  }

  #readHeaders(entry: Entry): void {
    const headers: string[] = [];
    for (const key of ['headers', 'http_headers'] as const) {
      for (const [name, text] of Object.entries(entry[key] ?? {})) {
        headers.push(`${name}: ${this.#expand(text, [...this.#path, key, name])}`);
      }
    }
    const fromEnv = (name: string, path: Path): string => this.#expand(`\${env:${name}}`, path, 'dollar');
    for (const [name, variable] of Object.entries(entry.env_http_headers ?? {})) {
      headers.push(`${name}: ${fromEnv(variable, [...this.#path, 'env_http_headers', name])}`);
    }
    const token = entry.bearer_token_env_var;
    if (token !== undefined) {
      headers.push(`Authorization: Bearer ${fromEnv(token, [...this.#path, 'bearer_token_env_var'])}`);
    }
    const [key = 'headers'] = ['headers', 'http_headers', 'env_http_headers', 'bearer_token_env_var'].filter(
      (name) => name in entry,
    );
    if (headers.length > 0) this.#set('header', headers, [key]);
  }

  #readCommon(entry: Entry): void {
    const first = (...keys: readonly (keyof Entry & string)[]) => keys.find((key) => entry[key] !== undefined);
    const include = first('includeTools', 'enabledTools', 'enabled_tools');
    const exclude = first('excludeTools', 'disabledTools', 'disabled_tools');
    const listOf = (key: string): readonly string[] =>
      (entry[key] as readonly string[]).map((text, index) => this.#expand(text, [...this.#path, key, index]));
    if (include !== undefined) this.#set('include-tool', listOf(include), [include]);
    if (exclude !== undefined) this.#set('exclude-tool', listOf(exclude), [exclude]);
    if (entry.protocolEra !== undefined) this.#set('protocol', [entry.protocolEra], ['protocolEra']);
    const { timeout, tool_timeout_sec: seconds } = entry;
    if (seconds !== undefined) this.#set('request-timeout', [`${seconds}s`], ['tool_timeout_sec']);
    else if (typeof timeout === 'object' && timeout.request !== undefined) {
      this.#set('request-timeout', [`${Math.ceil(timeout.request)}ms`], ['timeout', 'request']);
    } else if (typeof timeout === 'number' && this.#parts.timeout === 'of calls') {
      this.#set('request-timeout', [durationOf(timeout)], ['timeout']);
    }
  }

  // ---- our own key

  #readPortage({ portage = {} }: Entry): {
    readonly isRequired: boolean | undefined;
    readonly callers: WrittenServer['callers'];
  } {
    let isRequired: boolean | undefined;
    let callers: readonly string[] | undefined;
    for (const [key, value] of Object.entries(portage)) {
      const path = [...this.#path, 'portage', key];
      if (key === 'required') isRequired = this.#member('required', value, path);
      else if (key === 'callers') callers = this.#member('callers', value, path);
      else {
        const found = readOption(key, value, 'entry');
        if (found.kind === 'mistake') this.#mistake(path, found.problem);
        else
          this.#set(
            found.name,
            found.texts.map((text) => this.#expand(text, path)),
            ['portage', key],
          );
      }
    }
    return { isRequired, callers };
  }

  #member<Key extends keyof typeof ENTRY_MEMBERS>(
    key: Key,
    value: unknown,
    path: Path,
  ): ReturnType<(typeof ENTRY_MEMBERS)[Key]['parse']> | undefined {
    const parsed = ENTRY_MEMBERS[key].safeParse(value);
    if (parsed.success) return parsed.data as ReturnType<(typeof ENTRY_MEMBERS)[Key]['parse']>;
    return this.#mistake(path, `expected ${parsed.error.issues[0]?.message}, got ${nameKind(value)}`);
  }

  // ---- in common

  #tellIgnored(entry: Entry): void {
    for (const [key, value] of Object.entries(entry)) {
      if (key in ENTRY.shape) continue;
      if (HOST_LOGIN.includes(key) && value !== false) this.#parts.ignored([...this.#path, key], 'login of the host');
      else if (!HARMLESS.has(key)) this.#parts.ignored([...this.#path, key], 'unknown');
    }
  }

  #set(name: OptionName, texts: readonly string[], below: Path): void {
    this.#options.set(name, new OptionInFile(texts, [...this.#path, ...below], this.#parts.sourceOf));
  }

  #expand(text: string, path: Path, style = this.#parts.variables.style): string {
    const expanded = expandVariables(text, { ...this.#parts.variables, style });
    if (expanded.ok) return expanded.text;
    this.#mistake(path, expanded.problem);
    return '';
  }

  #mistake(path: Path, problem: string): undefined {
    this.#isWrong = true;
    this.#parts.mistake(path, problem);
  }
}

/** Some hosts count in seconds. No call of anybody ends within a second, and none lasts a quarter of an hour of them. */
function durationOf(timeout: number): string {
  return timeout < 1000 ? `${timeout}s` : `${Math.ceil(timeout)}ms`;
}

function partOf(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((part, key) => (part as Record<string | number, unknown> | undefined)?.[key], value);
}

/** The key `portage` at the top of a file. */
export function readTopOptions(
  value: unknown,
  parts: Pick<EntryParts, 'sourceOf' | 'mistake' | 'variables'>,
): WrittenOptions {
  const options = new Map<OptionName, WrittenOption>();
  if (value === undefined) return options;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    parts.mistake(['portage'], `expected an object, got ${nameKind(value)}`);
    return options;
  }
  for (const [key, member] of Object.entries(value)) {
    const path = ['portage', key];
    const found = readOption(key, member, 'top');
    if (found.kind === 'mistake') {
      parts.mistake(path, found.problem);
      continue;
    }
    const texts = found.texts.map((text) => {
      const expanded = expandVariables(text, parts.variables);
      if (expanded.ok) return expanded.text;
      parts.mistake(path, expanded.problem);
      return '';
    });
    options.set(found.name, new OptionInFile(texts, path, parts.sourceOf));
  }
  return options;
}
