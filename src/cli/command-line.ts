/** Parses the arguments of the command line. Values remain text; parse/config.ts turns them into types. */
import { Parser } from 'yargs/helpers';
import type { Target } from '../config/server.ts';
import { BridgeError } from '../errors.ts';
import { isShell, type Shell } from './completion.ts';
import { type HelpTopic, parseHelpTopic, topicOfVerb } from './help/topic.ts';
import { explainUnknownOption, explainUrlOfOption } from './mistakes.ts';
import { toKebabCase, variableOf } from './options/option-names.ts';
import {
  BRIDGE_VERBS,
  type BridgeVerb,
  type CommandLineOptions,
  findFlag,
  OPTIONS,
  type Option,
  type OptionName,
} from './options/option-table.ts';
import { translate } from './other-bridges.ts';
import type { Environment } from './parse/servers/child-environment.ts';
import { aggregateWithoutFile, isUrlLike, parseTarget } from './parse/servers/target.ts';
import { explainUnexpectedArgument, explainWrongProgram, lineOf } from './unexpected-argument.ts';

export type CommandLine =
  | { readonly kind: 'help'; readonly topic: HelpTopic }
  | { readonly kind: 'version' }
  | { readonly kind: 'completion'; readonly shell: Shell }
  /** `login --status` */
  | { readonly kind: 'logins'; readonly options: CommandLineOptions }
  /** `words` are tools, or a file. */
  | { readonly kind: 'pin'; readonly options: CommandLineOptions; readonly words: readonly string[] }
  | { readonly kind: 'info'; readonly options: CommandLineOptions }
  /** `words` are a file, or the URL of a running bridge. */
  | { readonly kind: 'view'; readonly options: CommandLineOptions; readonly words: readonly string[] }
  | BridgeCommand;

export interface BridgeCommand {
  readonly kind: 'bridge';
  readonly verb: BridgeVerb;
  /**
   * The server on the command line; undefined if all servers come from a configuration file. For `snippet`, the URL of
   * a server that is already served.
   */
  readonly target: Target | undefined;
  /** The selected servers of a configuration file; empty for all. */
  readonly names: readonly string[];
  readonly options: CommandLineOptions;
}

type ParsedLine = { readonly [key: string]: unknown; readonly _: readonly (string | number)[] };

/**
 * @param platform the platform whose shells the suggested commands are written for
 * @param env may name a configuration file, which is used if the command line names no server
 * @throws BridgeError ERR_CONFIG_OPTION with a suggested correction
 */
export function parseCommandLine(
  argv: readonly string[],
  platform?: NodeJS.Platform,
  env: Environment = {},
): CommandLine {
  const straightened = straighten(argv);
  if (straightened !== undefined) throw refuseTypography(straightened, platform);
  // Arguments after the first `--` belong to the server and are not parsed.
  const { head, command } = splitAtSeparator(argv);

  const parsed = splitIntoOptions(head);
  const { verb, positionals } = splitVerb(parsed._.map(String));
  if (verb === 'help') return { kind: 'help', topic: parseHelpTopic(positionals) };
  if (parsed.help === true) return { kind: 'help', topic: topicOfVerb(verb) };
  if (parsed.version === true || verb === 'version') return { kind: 'version' };

  if (verb === 'completion') {
    refuseMistakes({ head, parsed, verb: undefined, stray: undefined, command, platform });
    return { kind: 'completion', shell: parseShell(positionals) };
  }
  // Removed from the options, since `serve` has a flag of the same name.
  if (verb === 'login' && parsed.status === true) {
    const { status: _, ...others } = parsed;
    const stray = positionals.find((argument) => !isUrlLike(argument));
    refuseMistakes({ head, parsed, verb, stray, command, platform });
    return { kind: 'logins', options: collectOptions({ ...others, _: [] }) };
  }
  if (verb === 'pin') {
    refuseMistakes({ head, parsed, verb, stray: undefined, command: undefined, platform });
    // A tool whose name begins with a hyphen comes after `--`.
    return { kind: 'pin', words: [...positionals, ...(command ?? [])], options: collectOptions(parsed) };
  }
  if (verb === 'info') {
    refuseMistakes({ head, parsed, verb, stray: undefined, command, platform });
    if (positionals.length > 0 || command !== undefined) throw new BridgeError('ERR_CONFIG_OPTION', INFO_TAKES_NOTHING);
    return { kind: 'info', options: collectOptions(parsed) };
  }
  if (verb === 'view') {
    refuseMistakes({ head, parsed, verb, stray: undefined, command: undefined, platform });
    // A file whose name begins with a hyphen comes after `--`.
    return { kind: 'view', words: [...positionals, ...(command ?? [])], options: collectOptions(parsed) };
  }
  const urls = positionals.filter(isUrlLike);
  const isLooking = verb === 'report' || verb === 'top';
  const takesFile =
    !isLooking && (parsed.config !== undefined || (isSetForConfig(env) && urls.length === 0 && command === undefined));
  const names = takesFile ? positionals.filter((argument) => !isUrlLike(argument)) : [];
  const stray = takesFile ? undefined : positionals.find((argument) => !isUrlLike(argument));
  refuseMistakes({ head, parsed, verb, stray, command, platform });
  const wrong =
    positionals.length > 0 || takesFile || isLooking
      ? undefined
      : explainWrongProgram({ head, command: command ?? [], platform });
  if (wrong !== undefined) throw new BridgeError('ERR_CONFIG_OPTION', wrong);
  const needsTarget = !takesFile && verb !== 'snippet' && !isLooking;
  const isAggregate = parsed.aggregate !== undefined && parsed.aggregate !== 'false';
  if (needsTarget && isAggregate && positionals.length === 0 && command === undefined) {
    throw aggregateWithoutFile('--aggregate');
  }
  const hasTarget = urls.length > 0 || command !== undefined;
  const target = needsTarget || hasTarget ? parseTarget(verb ?? 'serve', urls, command ?? []) : undefined;
  return { kind: 'bridge', verb: verb ?? 'serve', target, names, options: collectOptions(parsed) };
}

const INFO_TAKES_NOTHING =
  'info describes this installation, and takes no server or file, as in\n  mcp-portage info\nA server is described by\n  mcp-portage probe https://example.com/mcp';

/**
 * Returns the path of the configuration file, or undefined if none is used. The variable counts only without a server
 * on the command line.
 */
export function configFileOf({ options, target }: BridgeCommand, env: Environment): string | undefined {
  const written = options.get('config')?.at(-1);
  return written ?? (target === undefined && isSetForConfig(env) ? env[CONFIG_VARIABLE] : undefined);
}

const CONFIG_VARIABLE = variableOf('config');

function isSetForConfig(env: Environment): boolean {
  return Boolean(env[CONFIG_VARIABLE]);
}

interface SplitLine {
  readonly head: readonly string[];
  /** Undefined if there is no `--`. */
  readonly command: readonly string[] | undefined;
}

function splitAtSeparator(argv: readonly string[]): SplitLine {
  const separator = argv.indexOf('--');
  if (separator === -1) return { head: argv, command: undefined };
  return { head: argv.slice(0, separator), command: argv.slice(separator + 1) };
}

/** Adds the next mistake of the corrected command line, if there is one, so that both are reported together. */
function refuseTypography({ word, kind, argv }: Straightened, platform: NodeJS.Platform | undefined): BridgeError {
  const shown = JSON.stringify(word.split('=', 1)[0]);
  const rule =
    kind === 'long dash'
      ? 'a long dash, which text editors put in place of hyphens. Options begin with "--"'
      : `a curly quote, which text editors put in place of ' and ". The shell only knows the straight ones`;
  const slip = `${shown} begins with ${rule}`;
  try {
    parseCommandLine(argv, platform);
  } catch (thrown) {
    if (!(thrown instanceof BridgeError)) throw thrown;
    return new BridgeError(thrown.code, `${slip}.\n${thrown.message}`);
  }
  const { head, command } = splitAtSeparator(argv);
  return new BridgeError('ERR_CONFIG_OPTION', `${slip}, as in\n  ${lineOf({ command, platform }, head)}`);
}

/**
 * Uses only the parser of yargs. Its help does not show the names of values or align all groups, and its checks say no
 * more than "unknown argument"; help/ and mistakes.ts do.
 */
function splitIntoOptions(head: readonly string[]): ParsedLine {
  return Parser(head.map(withValue), {
    // Options with a value have no type here: the parser would return an empty string for one whose value is missing.
    boolean: [
      'help',
      'version',
      ...OPTIONS.filter(({ kind }) => kind === 'flag').map(({ flag }) => flag.slice('--'.length)),
    ],
    alias: { help: 'h', version: ['v', 'V'] },
    configuration: {
      'camel-case-expansion': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
    },
  });
}

/** Adds the value that an option has if it is written without one, so that it does not take the next word for it. */
function withValue(word: string): string {
  const bare = findFlag(word)?.bare;
  return bare === undefined ? word : `${word}=${bare}`;
}

const VERBS = [...BRIDGE_VERBS, 'completion', 'help', 'version'] as const;

/** Separates the verb from the other arguments. Undefined if there is none, which means `serve`. */
function splitVerb(positionals: readonly string[]) {
  const verb = VERBS.find((candidate) => candidate === positionals[0]);
  return { verb, positionals: verb === undefined ? positionals : positionals.slice(1) };
}

interface CheckedLine extends SplitLine {
  readonly parsed: ParsedLine;
  readonly verb: BridgeVerb | undefined;
  /** The first argument that is neither a verb nor a URL. */
  readonly stray: string | undefined;
  readonly platform: NodeJS.Platform | undefined;
}

/**
 * Throws for unknown options, and for an argument that belongs after `--`. Options after that argument are not
 * reported, as they are probably the server's.
 */
function refuseMistakes({ head, command, parsed, verb, stray, platform }: CheckedLine): void {
  const strayAt = stray === undefined ? head.length : findStray(head, stray, verb);
  const unknown = new Map(
    Object.keys(parsed)
      .filter((key) => !KNOWN_KEYS.has(key))
      .map((key) => [head.findIndex((token) => isOptionToken(token, key)), key] as const)
      // Several letters after one dash are a single argument, which is reported once, for its first letter.
      .reverse(),
  );
  const explanations = [...unknown]
    .reverse()
    .filter(([at]) => at < strayAt)
    .map(([at, key]) => explainUnknownOption({ name: key, written: head[at] ?? `--${key}`, value: parsed[key] }));
  const urlOfOption = verb === undefined && explanations.length === 0 ? explainUrlOfOption(head) : undefined;
  if (urlOfOption !== undefined) explanations.push(urlOfOption);
  if (explanations.length > 0) {
    const line = explanations.length > 1 ? translatedLine(head, command, platform) : undefined;
    const together = line === undefined ? [] : [`All together:\n  ${line}`];
    throw new BridgeError('ERR_CONFIG_OPTION', [...explanations, ...together].join('\n'));
  }
  if (stray !== undefined) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      explainUnexpectedArgument({ head, at: strayAt, argument: stray, verb, command, platform }),
    );
  }
}

/** Returns the command line of another bridge as it is written here, unless it cannot be, or is not accepted either. */
function translatedLine(
  head: readonly string[],
  command: readonly string[] | undefined,
  platform: NodeJS.Platform | undefined,
): string | undefined {
  const translated = translate(head, command);
  if (translated === undefined) return undefined;
  const behind = translated.command === undefined ? [] : ['--', ...translated.command];
  try {
    parseCommandLine([...translated.head, ...behind], platform);
  } catch (thrown) {
    if (thrown instanceof BridgeError) return undefined;
    throw thrown;
  }
  return lineOf({ command: translated.command, platform }, translated.head);
}

/** Returns the index of the argument after the verb, since the verb may be the same word. */
function findStray(head: readonly string[], stray: string, verb: BridgeVerb | undefined): number {
  return head.indexOf(stray, verb === undefined ? 0 : head.indexOf(verb) + 1);
}

const KNOWN_KEYS: ReadonlySet<string> = new Set([
  '_',
  '$0',
  'help',
  'h',
  'version',
  'v',
  'V',
  ...OPTIONS.map(({ name }) => toKebabCase(name)),
]);

function isOptionToken(token: string, key: string): boolean {
  if (key.length === 1) return /^-[^-]/.test(token) && token.includes(key);
  const name = token.split('=', 1)[0];
  return name === `--${key}` || name === `--no-${key}` || name === `-${key}`;
}

function collectOptions(parsed: ParsedLine): CommandLineOptions {
  const options = new Map<OptionName, readonly string[]>();
  for (const option of OPTIONS) {
    const raw = parsed[toKebabCase(option.name)];
    if (raw === undefined) continue;
    options.set(
      option.name,
      (Array.isArray(raw) ? raw : [raw]).map((value) => readWord(option, value)),
    );
  }
  return options;
}

/** Converts a value of the parser, which is `true` for an option without a value and `false` for its `--no-` form. */
function readWord({ name, kind, flag, type }: Option, value: unknown): string {
  if (kind === 'flag') return String(value);
  if (value === false)
    throw new BridgeError('ERR_CONFIG_OPTION', `--no-${toKebabCase(name)} does not exist: leave ${flag} out.`);
  if (value === true) {
    throw new BridgeError('ERR_CONFIG_OPTION', `${flag} needs a value: ${flag} <${type.placeholder}>; got none.`);
  }
  const text = String(value);
  if (name === 'config' && isUrlLike(text)) {
    const why = 'Download it first, since whoever can change it can have any program started as you';
    throw new BridgeError('ERR_CONFIG_OPTION', `--config: expected a file on this machine; got a URL. ${why}.`);
  }
  // Shells do not expand the ~ in `--config=~/mcp.json`.
  if (type.completes !== undefined && /^~[/\\]/.test(text)) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `${flag}: expected a path in which the shell has replaced ~; got "${text}". Write ${flag} ${text} with a space instead of "=", or the whole path.`,
    );
  }
  return text;
}

function parseShell(positionals: readonly string[]): Shell {
  const shell = positionals[0];
  if (shell !== undefined && isShell(shell) && positionals.length === 1) return shell;
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `completion: expected bash, zsh or fish; got ${positionals.length === 0 ? 'nothing' : JSON.stringify(positionals.join(' '))}. Try: source <(mcp-portage completion bash)`,
  );
}

// ---- long dashes and curly quotes, which come from command lines copied out of formatted text

const LONG_DASH = /^[\u2010-\u2015\u2212\uff0d]+/;
const OPENING = /^[\u2018-\u201f\u00ab\u00bb\u2039\u203a]/;
const CLOSING = /[\u2018-\u201f\u00ab\u00bb\u2039\u203a]$/;

export interface Straightened {
  /** The first word with such a character. */
  readonly word: string;
  readonly kind: 'long dash' | 'curly quote';
  /** The command line with hyphens and straight quotes in their place. */
  readonly argv: readonly string[];
}

/**
 * Returns undefined if no argument up to the server's program has such characters. Arguments after it belong to the
 * server.
 */
export function straighten(argv: readonly string[]): Straightened | undefined {
  let found: Omit<Straightened, 'argv'> | undefined;
  const meant: string[] = [];
  let hasSeparator = false;
  let index = 0;
  while (index < argv.length) {
    const word = argv[index] ?? '';
    index += 1;
    if (LONG_DASH.test(word) && !hasSeparator) {
      found ??= { word, kind: 'long dash' };
      const name = word.replace(LONG_DASH, '');
      meant.push(`${name.length === 1 ? '-' : '--'}${name}`);
    } else if (OPENING.test(word)) {
      found ??= { word, kind: 'curly quote' };
      // The shell has split the quoted text at its spaces.
      const end = argv.findIndex((other, at) => at >= index - 1 && CLOSING.test(other) && other.length > 1);
      const last = end === -1 ? index : end + 1;
      const quoted = argv
        .slice(index - 1, last)
        .join(' ')
        .replace(OPENING, '')
        .replace(CLOSING, '');
      // After `--`, the quotes enclose a program together with its arguments.
      meant.push(...(hasSeparator ? quoted.split(/\s+/) : [quoted]));
      index = last;
    } else {
      meant.push(word);
    }
    if (hasSeparator) break;
    hasSeparator = meant.at(-1) === '--';
  }
  return found === undefined ? undefined : { ...found, argv: [...meant, ...argv.slice(index)] };
}
