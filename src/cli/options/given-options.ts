/**
 * The options that were set, and their sources. The command line overrides the environment, which overrides the entry
 * of a server in a file, which overrides the file's options for all servers. Defaults come last.
 */

import type { Target } from '../../config/server.ts';
import { BridgeError } from '../../errors.ts';
import type { Environment } from '../parse/servers/child-environment.ts';
import type { Parsed } from '../parse/value.ts';
import type { BridgeVerb, OptionSpec } from './option-spec.ts';
import {
  type CommandLineOptions,
  ENV_PREFIX,
  envNameOf,
  findOption,
  OPTIONS,
  type OptionName,
} from './option-table.ts';

/** An option as the user wrote it. */
export interface WrittenOption {
  readonly texts: readonly string[];
  /** The origin, for messages: `--port`, `MCP_PORTAGE_PORT`, or a position in a file. */
  readonly source: string;
  /**
   * With `host`, the option comes from a host's own login settings, and has no effect if this program does not log in.
   */
  readonly meantFor?: 'us' | 'host';
}

export type WrittenOptions = ReadonlyMap<OptionName, WrittenOption>;

/**
 * Reads options by name with the parser for their kind. A wrong value is an ERR_CONFIG_OPTION that names the source.
 */
export class GivenOptions {
  readonly #given: WrittenOptions;

  /**
   * @param layers sources of options; the first one that sets an option is used
   * @param use options that do not apply to it are ignored
   */
  constructor(layers: readonly WrittenOptions[], use: OptionUse) {
    const given = new Map<OptionName, WrittenOption>();
    for (const layer of layers) {
      for (const [name, written] of layer) {
        const option = findOption(name);
        // A variable may be set for other uses: a container sets MCP_PORTAGE_PORT for every command that it may run.
        if (option !== undefined && isApplicable(option, use) && !given.has(name)) given.set(name, written);
      }
    }
    this.#given = given;
  }

  isGiven(name: OptionName): boolean {
    return this.#given.has(name);
  }

  /** Returns true if the option was set for this program, and not for a host. */
  isMeantForUs(name: OptionName): boolean {
    return this.#given.has(name) && this.#given.get(name)?.meantFor !== 'host';
  }

  /** Returns the source for messages: `MCP_PORTAGE_PORT`, a position in a file, or `--port`, also if it is not set. */
  sourceOf(name: OptionName): string {
    return this.#given.get(name)?.source ?? `--${name}`;
  }

  /** Returns true for an option from a file, whose variables are replaced already. */
  standsInFile(name: OptionName): boolean {
    const source = this.#given.get(name)?.source;
    return source !== undefined && !source.startsWith('--') && !source.startsWith(ENV_PREFIX);
  }

  /** Returns the source with the value, for messages. A value in a file is left out: it may be a misplaced secret. */
  sourceWith(name: OptionName, shown: string): string {
    return this.standsInFile(name) ? this.sourceOf(name) : `${this.sourceOf(name)} ${shown}`;
  }

  /** Returns the last given value, or the default of the table, or undefined. */
  optional<T>(name: OptionName, parse: (text: string) => Parsed<T>): T | undefined {
    const text = this.#given.get(name)?.texts.at(-1);
    if (text !== undefined) return this.#parse(name, text, parse);
    const byDefault = findOption(name)?.default;
    if (byDefault === undefined) return undefined;
    const known = defaults.get(parse) ?? new Map<OptionName, unknown>();
    defaults.set(parse, known);
    if (!known.has(name)) known.set(name, this.#parse(name, byDefault, parse));
    return known.get(name) as T;
  }

  /** Reads an option that has a default. */
  required<T>(name: OptionName, parse: (text: string) => Parsed<T>): T {
    const value = this.optional(name, parse);
    if (value === undefined) throw new Error(`option ${name} has no default`);
    return value;
  }

  /** Returns the values of an option as written, in order. */
  texts(name: OptionName): readonly string[] {
    return this.#given.get(name)?.texts ?? [];
  }

  list<T>(name: OptionName, parse: (text: string) => Parsed<T>): readonly T[] {
    return this.texts(name).map((text) => this.#parse(name, text, parse));
  }

  #parse<T>(name: OptionName, text: string, parse: (text: string) => Parsed<T>): T {
    const parsed = parse(text);
    if (parsed.ok) return parsed.value;
    const isShown = !this.standsInFile(name) && mayBeShown(name, text);
    const got = text === '' ? 'nothing' : isShown ? JSON.stringify(text) : 'something else';
    throw new BridgeError('ERR_CONFIG_OPTION', `${this.sourceOf(name)}: expected ${parsed.expected}; got ${got}.`);
  }
}

/** A cache of parsed defaults by parser and option, since they are the same for every server of a file. */
const defaults = new WeakMap<(text: string) => unknown, Map<OptionName, unknown>>();

const SECRET_OPTIONS: readonly OptionName[] = ['env', 'auth-token', 'cluster-key', 'oauth-param'];

/** Messages do not repeat values that can hold credentials. */
function mayBeShown(name: OptionName, text: string): boolean {
  return !SECRET_OPTIONS.includes(name) && !text.includes('@');
}

export function onCommandLine(options: CommandLineOptions): WrittenOptions {
  return new Map([...options].map(([name, texts]) => [name, { texts, source: `--${name}` }]));
}

export function inEnvironment(env: Environment): WrittenOptions {
  const found = OPTIONS.map((option) => [option.name, fromEnvironment(option, env)] as const);
  return new Map(found.flatMap(([name, written]) => (written === undefined ? [] : [[name, written]])));
}

/** An empty variable counts as not set: compose files and shells have no other way to say so. */
function fromEnvironment(option: OptionSpec, env: Environment): WrittenOption | undefined {
  const source = envNameOf(option.name);
  const text = env[source];
  if (text === undefined || text === '' || isServiceLink(option, text)) return undefined;
  const separator = option.separator === 'newline' ? '\n' : ',';
  const texts = option.kind === 'list' ? text.split(separator).map((part) => part.trim()) : [text];
  return { texts: texts.filter((part) => part !== ''), source };
}

/**
 * Returns true for a variable that Kubernetes sets. It describes each service of a namespace to all containers in it: a
 * service called `mcp-portage` appears as `MCP_PORTAGE_PORT=tcp://10.0.0.11:8000`, which is not one of our settings.
 */
function isServiceLink(option: OptionSpec, text: string): boolean {
  return option.name === 'port' && /^(tcp|udp|sctp):\/\//.test(text);
}

/**
 * The use of the program that decides which options apply. Others would have no effect, such as a port without a
 * listener, or a header for a child process.
 */
export interface OptionUse {
  readonly verb: BridgeVerb;
  /** `any` if there may be servers of several kinds. */
  readonly target: Target['kind'] | 'any';
}

export function isApplicable({ verbs, targets, group }: OptionSpec, use: OptionUse): boolean {
  if (use.verb === 'snippet') return OF_ADDRESSES.includes(group);
  if (use.verb === 'login' || use.verb === 'logout') {
    return OF_LOGINS.includes(group) && (verbs === undefined || verbs.includes(use.verb));
  }
  if (use.verb === 'report' || use.verb === 'top') return group === 'logging' || (verbs?.includes(use.verb) ?? false);
  return (
    (verbs === undefined || verbs.includes(use.verb)) &&
    (targets === undefined || use.target === 'any' || targets.includes(use.target))
  );
}

/** Options that determine the addresses of servers, and those for logging; they apply to `snippet`. */
const OF_ADDRESSES: readonly OptionSpec['group'][] = ['servers', 'listen', 'endpoints', 'access', 'snippet', 'logging'];

/** Options for connecting to a server and logging in there; they apply to `login` and `logout`. */
const OF_LOGINS: readonly OptionSpec['group'][] = ['servers', 'remote', 'login', 'logging'];

/** Throws ERR_CONFIG_COMBINATION for the first command-line option that does not apply. */
export function refuseInapplicable(commandLine: CommandLineOptions, use: OptionUse): void {
  const inapplicable = OPTIONS.find((option) => commandLine.has(option.name) && !isApplicable(option, use));
  if (inapplicable !== undefined) throw new BridgeError('ERR_CONFIG_COMBINATION', explain(inapplicable, use));
}

const WHY_NOT: Readonly<Record<BridgeVerb, string>> = {
  serve: '`serve` runs until it is stopped',
  connect: '`connect` does not listen: it speaks on its own stdin and stdout, with one client',
  probe: '`probe` only looks at the server, once',
  snippet: '`snippet` only prints what to paste',
  report: '`report` only says who uses what',
  top: '`top` only looks at a running bridge',
  login: '`login` only logs in',
  logout: '`logout` only forgets a login',
};

const STARTS_NO_SERVER: readonly BridgeVerb[] = ['snippet', 'report', 'top', 'login', 'logout'];

/**
 * Suggests options with this word in their names: `--timeout` is for `probe`, and others are called `--connect-timeout`
 * and the like.
 */
function askForRelated(name: string, use: OptionUse): string {
  const related = OPTIONS.filter((option) => isApplicable(option, use) && option.name.split('-').includes(name));
  return related.length === 0 ? '.' : `, or did you mean ${related.map((option) => `--${option.name}`).join(' or ')}?`;
}

function explain({ name, verbs, targets }: OptionSpec, use: OptionUse): string {
  if (verbs === undefined && STARTS_NO_SERVER.includes(use.verb)) {
    return `--${name} is about a server or how it is served; ${WHY_NOT[use.verb]}. Leave it out.`;
  }
  if (verbs !== undefined && !verbs.includes(use.verb)) {
    const places = verbs.map((verb) => `\`${verb}\``).join(' and ');
    return `--${name} is for ${places}; ${WHY_NOT[use.verb]}. Leave it out${askForRelated(name, use)}`;
  }
  const what = `a server that is ${targets?.map((kind) => HOW_SERVERS_ARE_USED[kind]).join(' or ')}`;
  const own = use.target === 'any' ? 'used otherwise' : HOW_SERVERS_ARE_USED[use.target];
  if (use.target === 'command') {
    return `--${name} is for ${what}; this one is ${own}. Leave it out, or hand the command what it needs by its own arguments or with --env.`;
  }
  const runs = targets?.includes('command') === true ? 'runs already and is' : 'is';
  return `--${name} is for ${what}; this one ${runs} ${own}. Leave it out.`;
}

export const HOW_SERVERS_ARE_USED: Readonly<Record<Target['kind'], string>> = {
  command: 'started as a command',
  url: 'reached by its URL',
  stream: 'reached over a byte stream',
};
