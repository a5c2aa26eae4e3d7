/** From the words of the command line to what is asked for. Values stay text here; parse-config.ts gives them types. */
import { Parser } from 'yargs/helpers';
import type { Target } from '../config.ts';
import { BridgeError } from '../errors.ts';
import { isShell, type Shell } from './completion.ts';
import { explainStrayWord, explainUnknownOption } from './mistakes.ts';
import { BRIDGE_VERBS, type BridgeVerb, type OptionSpec } from './option-spec.ts';
import { OPTIONS, type OptionName } from './option-table.ts';
import type { CommandLineOptions } from './options.ts';
import { isUrlLike, parseTarget } from './parse-target.ts';

export type CommandLine =
  /** Of one verb, or of everything. */
  | { readonly kind: 'help'; readonly verb: BridgeVerb | undefined }
  | { readonly kind: 'version' }
  | { readonly kind: 'completion'; readonly shell: Shell }
  | BridgeCommand;

export interface BridgeCommand {
  readonly kind: 'bridge';
  readonly verb: BridgeVerb;
  readonly target: Target;
  readonly options: CommandLineOptions;
}

type ParsedWords = { readonly [key: string]: unknown; readonly _: readonly (string | number)[] };

/**
 * @param platform whose shells the way out is written for
 * @throws BridgeError ERR_CONFIG_OPTION that names the way out
 */
export function parseCommandLine(argv: readonly string[], platform?: NodeJS.Platform): CommandLine {
  // Everything after the first `--` is the server's own business: not even looked at.
  const separator = argv.indexOf('--');
  const head = separator === -1 ? argv : argv.slice(0, separator);
  const command = separator === -1 ? [] : argv.slice(separator + 1);

  const parsed = splitIntoOptions(head);
  const { verb, words } = splitVerb(parsed._.map(String));
  if (verb === 'help') return { kind: 'help', verb: BRIDGE_VERBS.find((candidate) => candidate === words[0]) };
  if (parsed.help === true) return { kind: 'help', verb: BRIDGE_VERBS.find((candidate) => candidate === verb) };
  if (parsed.version === true) return { kind: 'version' };

  if (verb === 'completion') {
    refuseMistakes({ head, parsed, stray: undefined, hasCommand: separator !== -1, platform });
    return { kind: 'completion', shell: parseShell(words) };
  }
  const stray = words.find((word) => !isUrlLike(word));
  refuseMistakes({ head, parsed, stray, hasCommand: separator !== -1, platform });
  const target = parseTarget(verb ?? 'serve', words, command);
  return { kind: 'bridge', verb: verb ?? 'serve', target, options: collectOptions(parsed) };
}

/**
 * yargs' parser alone, without its help and its checks: help.ts has the names of values and one width for all groups,
 * and mistakes.ts can say more than "unknown argument".
 */
function splitIntoOptions(head: readonly string[]): ParsedWords {
  return Parser([...head], {
    // Options with a value have no type here: as a string, one without its value would come out empty.
    boolean: [
      'help',
      'version',
      ...OPTIONS.filter((option: OptionSpec) => option.kind === 'flag').map(({ name }) => name),
    ],
    alias: { help: 'h', version: 'v' },
    configuration: {
      'camel-case-expansion': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
    },
  });
}

const VERBS = [...BRIDGE_VERBS, 'completion', 'help'] as const;

/** Without a verb, serve is meant. */
function splitVerb(words: readonly string[]) {
  const verb = VERBS.find((candidate) => candidate === words[0]);
  return { verb, words: verb === undefined ? words : words.slice(1) };
}

interface CheckedWords {
  /** The command line up to `--`. */
  readonly head: readonly string[];
  readonly parsed: ParsedWords;
  /** The first word that is neither verb nor URL. */
  readonly stray: string | undefined;
  readonly hasCommand: boolean;
  readonly platform: NodeJS.Platform | undefined;
}

/** Unknown options and a word that belongs behind `--`: explains what comes first, since the rest may follow from it. */
function refuseMistakes({ head, parsed, stray, hasCommand, platform }: CheckedWords): void {
  const strayAt = stray === undefined ? head.length : head.indexOf(stray);
  const explanations = Object.keys(parsed)
    .filter((key) => !KNOWN_KEYS.has(key) || (key === 'sse' && isFollowedByUrl(head, '--sse')))
    .map((key) => ({ key, at: head.findIndex((token) => isOptionToken(token, key)) }))
    .filter(({ at }) => at < strayAt)
    .map(({ key, at }) => explainUnknownOption({ name: key, written: head[at] ?? `--${key}`, value: parsed[key] }));
  if (explanations.length > 0) throw new BridgeError('ERR_CONFIG_OPTION', explanations.join('\n'));
  if (stray !== undefined) {
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      explainStrayWord({ head, at: strayAt, word: stray, hasCommand, platform }),
    );
  }
}

const KNOWN_KEYS: ReadonlySet<string> = new Set([
  '_',
  '$0',
  'help',
  'h',
  'version',
  'v',
  ...OPTIONS.map(({ name }) => name),
]);

/** `--sse <url>` is how supergateway connects to a server; our flag of that name would serve it. */
function isFollowedByUrl(head: readonly string[], option: string): boolean {
  const at = head.indexOf(option);
  return at >= 0 && isUrlLike(head[at + 1] ?? '');
}

function isOptionToken(token: string, key: string): boolean {
  if (key.length === 1) return /^-[^-]/.test(token) && token.includes(key);
  const name = token.split('=', 1)[0];
  return name === `--${key}` || name === `--no-${key}` || name === `-${key}`;
}

function collectOptions(parsed: ParsedWords): CommandLineOptions {
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
  return String(value);
}

function parseShell(words: readonly string[]): Shell {
  const shell = words[0];
  if (shell !== undefined && isShell(shell) && words.length === 1) return shell;
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `completion: expected bash or zsh; got ${words.length === 0 ? 'nothing' : JSON.stringify(words.join(' '))}. Try: source <(mcp-portage completion bash)`,
  );
}
