/** From the command line's arguments to what is asked for. Values stay text here; parse/config.ts gives them types. */
import { Parser } from 'yargs/helpers';
import type { Target } from '../config/server.ts';
import { BridgeError } from '../errors.ts';
import { isShell, type Shell } from './completion.ts';
import { type HelpTopic, parseHelpTopic, topicOfVerb } from './help/topic.ts';
import { explainUnknownOption, explainUrlOfOption } from './mistakes.ts';
import { BRIDGE_VERBS, type BridgeVerb, type OptionSpec } from './options/option-spec.ts';
import { type CommandLineOptions, envNameOf, OPTIONS, type OptionName } from './options/option-table.ts';
import type { Environment } from './parse/servers/child-environment.ts';
import { isUrlLike, parseTarget } from './parse/servers/target.ts';
import { explainUnexpectedArgument, explainWrongProgram, lineOf } from './unexpected-argument.ts';

export type CommandLine =
  | { readonly kind: 'help'; readonly topic: HelpTopic }
  | { readonly kind: 'version' }
  | { readonly kind: 'completion'; readonly shell: Shell }
  /** `login --status` */
  | { readonly kind: 'logins'; readonly options: CommandLineOptions }
  | BridgeCommand;

export interface BridgeCommand {
  readonly kind: 'bridge';
  readonly verb: BridgeVerb;
  /** The server of the command line; undefined: those of a configuration file alone. For `snippet`, where one is served. */
  readonly target: Target | undefined;
  /** Which servers of a configuration file are meant; none: all of them. */
  readonly names: readonly string[];
  readonly options: CommandLineOptions;
}

type ParsedLine = { readonly [key: string]: unknown; readonly _: readonly (string | number)[] };

/**
 * @param platform whose shells the way out is written for
 * @param env may name a configuration file, for a command line that names no server
 * @throws BridgeError ERR_CONFIG_OPTION that names the way out
 */
export function parseCommandLine(
  argv: readonly string[],
  platform?: NodeJS.Platform,
  env: Environment = {},
): CommandLine {
  const straightened = straighten(argv);
  if (straightened !== undefined) throw refuseTypography(straightened, platform);
  // Everything after the first `--` is the server's own business: not even looked at.
  const { head, command } = splitAtSeparator(argv);

  const parsed = splitIntoOptions(head);
  const { verb, positionals } = splitVerb(parsed._.map(String));
  if (verb === 'help') return { kind: 'help', topic: parseHelpTopic(positionals[0]) };
  if (parsed.help === true) return { kind: 'help', topic: topicOfVerb(verb) };
  if (parsed.version === true || verb === 'version') return { kind: 'version' };

  if (verb === 'completion') {
    refuseMistakes({ head, parsed, verb: undefined, stray: undefined, command, platform });
    return { kind: 'completion', shell: parseShell(positionals) };
  }
  // `serve` has an option of the same name with a value.
  if (verb === 'login' && parsed.status === true) {
    const { status: _, ...others } = parsed;
    const stray = positionals.find((argument) => !isUrlLike(argument));
    refuseMistakes({ head, parsed, verb, stray, command, platform });
    return { kind: 'logins', options: collectOptions({ ...others, _: [] }) };
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
  const hasTarget = urls.length > 0 || command !== undefined;
  const target = needsTarget || hasTarget ? parseTarget(verb ?? 'serve', urls, command ?? []) : undefined;
  return { kind: 'bridge', verb: verb ?? 'serve', target, names, options: collectOptions(parsed) };
}

/** Where the configuration file is; undefined: none is used. The environment is asked where no server is named. */
export function configFileOf({ options, target }: BridgeCommand, env: Environment): string | undefined {
  const written = options.get('config')?.at(-1);
  return written ?? (target === undefined && isSetForConfig(env) ? env[CONFIG_VARIABLE] : undefined);
}

const CONFIG_VARIABLE = envNameOf('config');

function isSetForConfig(env: Environment): boolean {
  return Boolean(env[CONFIG_VARIABLE]);
}

interface SplitLine {
  readonly head: readonly string[];
  /** Undefined: there is no `--`. */
  readonly command: readonly string[] | undefined;
}

function splitAtSeparator(argv: readonly string[]): SplitLine {
  const separator = argv.indexOf('--');
  if (separator === -1) return { head: argv, command: undefined };
  return { head: argv.slice(0, separator), command: argv.slice(separator + 1) };
}

/** What is wrong beside that is told at once. */
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
 * yargs' parser alone, without its help and its checks: help/ has the names of values and one width for all groups,
 * and mistakes.ts can say more than "unknown argument".
 */
function splitIntoOptions(head: readonly string[]): ParsedLine {
  return Parser([...head], {
    // Options with a value have no type here: as a string, one without its value would come out empty.
    boolean: [
      'help',
      'version',
      ...OPTIONS.filter((option: OptionSpec) => option.kind === 'flag').map(({ name }) => name),
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

const VERBS = [...BRIDGE_VERBS, 'completion', 'help', 'version'] as const;

/** Takes the verb off the arguments. Undefined: there is none, which means serve. */
function splitVerb(positionals: readonly string[]) {
  const verb = VERBS.find((candidate) => candidate === positionals[0]);
  return { verb, positionals: verb === undefined ? positionals : positionals.slice(1) };
}

interface CheckedLine extends SplitLine {
  readonly parsed: ParsedLine;
  readonly verb: BridgeVerb | undefined;
  /** The first argument that is neither verb nor URL. */
  readonly stray: string | undefined;
  readonly platform: NodeJS.Platform | undefined;
}

/** Unknown options and an argument that belongs behind `--`: explains the first mistake, which may have caused the rest. */
function refuseMistakes({ head, command, parsed, verb, stray, platform }: CheckedLine): void {
  const strayAt = stray === undefined ? head.length : findStray(head, stray, verb);
  const unknown = new Map(
    Object.keys(parsed)
      .filter((key) => !KNOWN_KEYS.has(key))
      .map((key) => [head.findIndex((token) => isOptionToken(token, key)), key] as const)
      // Several letters behind one dash are one argument, which is explained once, by its first letter.
      .reverse(),
  );
  const explanations = [...unknown]
    .reverse()
    .filter(([at]) => at < strayAt)
    .map(([at, key]) => explainUnknownOption({ name: key, written: head[at] ?? `--${key}`, value: parsed[key] }));
  const urlOfOption = verb === undefined && explanations.length === 0 ? explainUrlOfOption(head) : undefined;
  if (urlOfOption !== undefined) explanations.push(urlOfOption);
  if (explanations.length > 0) throw new BridgeError('ERR_CONFIG_OPTION', explanations.join('\n'));
  if (stray !== undefined) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      explainUnexpectedArgument({ head, at: strayAt, argument: stray, verb, command, platform }),
    );
  }
}

/** Behind the verb: the same argument may be given twice. */
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
  ...OPTIONS.map(({ name }) => name),
]);

function isOptionToken(token: string, key: string): boolean {
  if (key.length === 1) return /^-[^-]/.test(token) && token.includes(key);
  const name = token.split('=', 1)[0];
  return name === `--${key}` || name === `--no-${key}` || name === `-${key}`;
}

function collectOptions(parsed: ParsedLine): CommandLineOptions {
  const options = new Map<OptionName, readonly string[]>();
  for (const option of OPTIONS) {
    const raw = parsed[option.name];
    if (raw === undefined) continue;
    options.set(
      option.name,
      (Array.isArray(raw) ? raw : [raw]).map((value) => readValue(option, value)),
    );
  }
  return options;
}

/** yargs says `true` for an option without a value and `false` for its `--no-` form. */
function readValue(option: OptionSpec, value: unknown): string {
  if (option.kind === 'flag') return String(value);
  if (value === false)
    throw new BridgeError('ERR_CONFIG_OPTION', `--no-${option.name} does not exist: leave --${option.name} out.`);
  if (value === true) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `--${option.name} needs a value: --${option.name} <${option.placeholder ?? 'value'}>; got none.`,
    );
  }
  const text = String(value);
  if (option.name === 'config' && isUrlLike(text)) {
    const why = 'Download it first, since whoever can change it can have any program started as you';
    throw new BridgeError('ERR_CONFIG_OPTION', `--config: expected a file on this machine; got a URL. ${why}.`);
  }
  // Shells leave `--config=~/mcp.json` as it is.
  if (option.completes !== undefined && /^~[/\\]/.test(text)) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `--${option.name}: expected a path in which the shell has replaced ~; got "${text}". Write --${option.name} ${text} with a space instead of "=", or the whole path.`,
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

// ---- long dashes and curly quotes: what text documents make of a command line that is copied from them

const LONG_DASH = /^[\u2010-\u2015\u2212\uff0d]+/;
const OPENING = /^[\u2018-\u201f\u00ab\u00bb\u2039\u203a]/;
const CLOSING = /[\u2018-\u201f\u00ab\u00bb\u2039\u203a]$/;

export interface Straightened {
  /** The word that shows it. */
  readonly word: string;
  readonly kind: 'long dash' | 'curly quote';
  /** The command line as it was meant. */
  readonly argv: readonly string[];
}

/** Undefined where nothing of that kind stands up to the server's program. What follows is the server's own business. */
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
      // The shell has split at the spaces between such quotes.
      const end = argv.findIndex((other, at) => at >= index - 1 && CLOSING.test(other) && other.length > 1);
      const last = end === -1 ? index : end + 1;
      const quoted = argv
        .slice(index - 1, last)
        .join(' ')
        .replace(OPENING, '')
        .replace(CLOSING, '');
      // A program and its arguments, where the program alone belongs.
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
