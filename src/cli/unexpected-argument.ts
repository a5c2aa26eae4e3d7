/** Explains arguments in the wrong place: what was most likely meant, and the corrected command line. */
import { scriptRunner } from '../process/command-name.ts';
import { showArguments } from '../process/shown-arguments.ts';
import { suggest } from '../suggest.ts';
import { BRIDGE_VERBS, type BridgeVerb, findFlag } from './options/option-table.ts';
import { isUrlLike } from './parse/servers/target.ts';

export interface UnexpectedArgument {
  /** The command line up to `--`. */
  readonly head: readonly string[];
  /** The index of the argument in `head`. */
  readonly at: number;
  readonly argument: string;
  /** The verb, if the command line begins with one. */
  readonly verb: BridgeVerb | undefined;
  /** The arguments after `--`; undefined if there is no `--`. */
  readonly command: readonly string[] | undefined;
  readonly platform: NodeJS.Platform | undefined;
}

/** Explains an argument before `--` that is neither a verb nor a URL, and suggests a correction. */
export function explainUnexpectedArgument(stray: UnexpectedArgument): string {
  const { head, at, argument, command } = stray;
  if (argument === '') return 'One of the arguments is empty; is a variable of the shell not set?';
  return (
    explainOwnName(stray) ??
    explainWish(stray) ??
    explainVerb(stray) ??
    explainConfigFile(stray) ??
    explainVariable(stray) ??
    explainWrappedUrl(stray) ??
    explainBareAddress(stray) ??
    explainForAddress(stray) ??
    explainDashes(stray) ??
    explainPair(head.slice(at - 2, at), command !== undefined) ??
    explainUnknownVerb(stray) ??
    explainBesideUrl(stray) ??
    explainMissingSeparator(stray)
  );
}

/** Explains `mcp-portage npx -y mcp-portage …`, which results if a host or a script already names the program. */
function explainOwnName(stray: UnexpectedArgument): string | undefined {
  const { head, at } = stray;
  const end = head.findIndex((word, index) => index >= at && /^mcp-portage(@[\w.^~-]+)?$/.test(word));
  if (end === -1 || !head.slice(at, end).every((word) => /^(npx|bunx|pnpm|yarn|dlx|--?y(es)?)$/.test(word)))
    return undefined;
  return `"mcp-portage" is given twice; once is enough:\n  ${lineOf(stray, head.toSpliced(at, end - at + 1))}`;
}

const EXAMPLE = 'https://example.com/mcp';

/** Commands that similar programs often have, and the equivalents here. */
const WISHES: ReadonlyMap<string, string> = new Map([
  ['status', 'what a running bridge does is shown by\n  mcp-portage top http://127.0.0.1:8000'],
  ['stop', 'the bridge ends with Ctrl-C, or with SIGTERM, as service managers send it.'],
  ['list', `the tools of a server are listed by\n  mcp-portage probe ${EXAMPLE}`],
  ['inspect', `what a server offers is shown by\n  mcp-portage probe ${EXAMPLE}`],
  [
    'install',
    'what a host needs to use a server is shown by\n  mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp',
  ],
]);

function explainWish({ head, argument, verb, command }: UnexpectedArgument): string | undefined {
  const way = verb === undefined && command === undefined ? WISHES.get(argument) : undefined;
  if (way === undefined) return undefined;
  const url = head.find(isUrlLike);
  const example = url === undefined ? EXAMPLE : showArguments([url]);
  return `There is no command "${argument}": ${way.replace(EXAMPLE, () => example)}`;
}

/** Explains verbs that are repeated, come late, or are misspelled. */
function explainVerb(stray: UnexpectedArgument): string | undefined {
  const { head, at, argument, verb } = stray;
  const without = head.toSpliced(at, 1);
  const given = BRIDGE_VERBS.find((candidate) => candidate === argument);
  if (given !== undefined) {
    if (verb === given) return `"${argument}" is given twice; once is enough:\n  ${lineOf(stray, without)}`;
    if (verb === undefined)
      return `The command "${argument}" comes before the server:\n  ${lineOf(stray, [argument, ...without])}`;
    const either = [verb, given].map((one) => {
      const line = [one, ...without.toSpliced(without.indexOf(verb), 1)];
      return `  ${lineOf(stray, line)}`;
    });
    return `"${verb}" and "${argument}" are two commands; give one of them:\n${either.join('\n')}`;
  }
  if (argument === 'help' && verb !== undefined) return `"help" comes first, as in\n  mcp-portage help ${verb}`;
  if (argument === 'version' && head.length === 2) return '"version" stands alone, as in\n  mcp-portage version';
  const [meant] = verb === undefined ? suggest(argument, [...BRIDGE_VERBS, 'completion']) : [];
  return meant === undefined ? undefined : `Unknown command ${JSON.stringify(argument)}; did you mean ${meant}?`;
}

interface TakenAddress {
  readonly what: string;
  readonly example: string;
}

const RUNNING_BRIDGE = 'the URL of a running bridge';

/** The arguments of commands that start no server, and so accept no command for one. */
const TAKEN_ADDRESSES: Readonly<Partial<Record<BridgeVerb, TakenAddress>>> = {
  snippet: { what: 'the URL of a server', example: 'snippet --for cursor http://127.0.0.1:8000/mcp' },
  report: { what: RUNNING_BRIDGE, example: 'report --url http://127.0.0.1:8000' },
  top: { what: RUNNING_BRIDGE, example: 'top http://127.0.0.1:8000' },
};

function explainForAddress({ argument, verb }: UnexpectedArgument): string | undefined {
  const taken = verb && TAKEN_ADDRESSES[verb];
  if (taken === undefined) return undefined;
  return `Unexpected ${JSON.stringify(argument)}: ${verb} takes ${taken.what}, as in\n  mcp-portage ${taken.example}`;
}

/** Explains a configuration file without `--config`: `mcp-portage .mcp.json` or `mcp-portage -- .mcp.json`. */
function explainConfigFile({
  head,
  at,
  argument,
  verb,
  platform,
}: Omit<UnexpectedArgument, 'command'>): string | undefined {
  if (isUrlLike(argument) || verb === 'report' || verb === 'top') return undefined;
  const shown = JSON.stringify(argument);
  if (!/\.(jsonc?|toml|ya?ml)$/i.test(argument)) return undefined;
  const line = lineOf({ command: undefined, platform }, [
    ...head.slice(0, at),
    '--config',
    argument,
    ...head.slice(at + 1),
  ]);
  return `${shown} is a configuration file, which is named with --config, as in\n  ${line}`;
}

/** Explains an assignment as in a shell: `API_KEY=x npx server`. */
function explainVariable(stray: UnexpectedArgument): string | undefined {
  const { head, at, argument, command } = stray;
  const name = /^([A-Za-z_]\w*)=/.exec(argument)?.[1];
  if (name === undefined) return undefined;
  const rest = head.slice(at + 1);
  const behind = [...rest, ...(command ?? [])];
  const line = lineOf({ ...stray, command: behind.length > 0 ? behind : ['<command>'] }, [
    ...head.slice(0, at),
    '--env',
    argument,
  ]);
  return `Unexpected "${name}=…": variables of the server are set with --env, as in\n  ${line}`;
}

/**
 * Explains a URL that was copied with its delimiters: `<https://example.com>`, `"https://example.com"` or
 * `[text](https://example.com)`.
 */
function explainWrappedUrl(stray: UnexpectedArgument): string | undefined {
  const { head, at, argument } = stray;
  const url = /^(?:\[[^\]]*\]\(|[<"'`(]+)((?:https?|wss?):\/\/[^\s<>"'`()]+)[>"'`).,;]+$/i.exec(argument)?.[1];
  if (url === undefined) return undefined;
  return `The URL is given alone, without what stands around it:\n  ${lineOf(stray, head.with(at, url))}`;
}

const LOCAL_HOST = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?(\/|$)/i;

/** Explains an address with no scheme or part of one: `localhost:3000/mcp`, `example.com`, `http:/example.com`. */
function explainBareAddress(stray: UnexpectedArgument): string | undefined {
  const { head, at, argument } = stray;
  if (/^unix:\/(?!\/)/i.test(argument)) {
    const url = `unix://${argument.slice('unix:'.length)}`;
    return `Unexpected ${JSON.stringify(argument)}: two slashes stand before the path, as in\n  ${lineOf(stray, head.with(at, url))}`;
  }
  const broken = /^(https?)(:\/?|\/\/)(?=[^:/])/i.exec(argument);
  const isAddress =
    /^(localhost|\d+\.\d+\.\d+\.\d+|\[[\da-f:]+\]|[\w.-]+:\d+)(:\d+)?(\/|$)|^[\w-]+(\.[\w-]+)+\/|^([\w-]+\.)+(com|org|net|io|dev|ai|app)$/i.test(
      argument,
    );
  if (broken === null && !isAddress) return undefined;
  const scheme = broken?.[1]?.toLowerCase() ?? (LOCAL_HOST.test(argument) ? 'http' : 'https');
  const url = `${scheme}://${argument.slice(broken?.[0].length ?? 0)}`;
  const shown = JSON.stringify(argument.replace(/[^/@]*@/, '…@').replace(/\?.*$/s, '?…'));
  return `Unexpected ${shown}: a URL begins with http:// or https://, as in\n  ${lineOf(stray, head.with(at, url))}`;
}

/** Explains `-`, `---` and `- -`, which were meant as the separator `--`. */
function explainDashes(stray: UnexpectedArgument): string | undefined {
  const { head, at, argument } = stray;
  if (!/^-+$/.test(argument)) return undefined;
  const end = head.findIndex((other, index) => index > at && !/^-+$/.test(other));
  const behind = end === -1 ? [] : head.slice(end);
  return `Unexpected ${argument}: the server's command goes after two hyphens, as in\n  ${lineOf({ ...stray, command: behind }, head.slice(0, at))}`;
}

/**
 * Explains `--env NAME value` and `--header Name value`, the form of the Python mcp-proxy. The value may be a secret,
 * so it is not shown. Without a command after `--`, the word after `--env NAME` is more likely the command.
 */
function explainPair([option, name = '']: readonly string[], hasCommand: boolean): string | undefined {
  if (option === '--env' && hasCommand && /^\w+$/.test(name)) {
    return `--env takes one word: --env ${name}=<value>, or --env ${name} alone to copy it from here.`;
  }
  if (option === '--header' && /^[\w-]+:?$/.test(name)) {
    return `--header takes one word, in quotes: --header '${name.replace(/:$/, '')}: <value>'`;
  }
  return undefined;
}

const COMMANDS =
  'the commands are serve (for HTTP clients), connect (for a stdio client), probe (a report on the server), snippet, report, top and completion';

/**
 * Explains `start -- npx server` and `proxy https://…`. The rest is a complete command line, so the argument was meant
 * as a verb.
 */
function explainUnknownVerb(stray: UnexpectedArgument): string | undefined {
  const { head, at, argument, verb, command } = stray;
  if (verb !== undefined || !/^[a-z]+$/i.test(argument)) return undefined;
  const without = head.toSpliced(at, 1);
  const [program] = command ?? [];
  const unknown = `Unknown command ${JSON.stringify(argument)}; ${COMMANDS}`;
  if (head.slice(at + 1).some(isUrlLike) || (program !== undefined && !program.startsWith('-'))) {
    return `${unknown}. For example:\n  ${lineOf(stray, ['serve', ...without])}`;
  }
  const rest = head.slice(at + 1);
  if (command !== undefined || countOwnOptions(rest) < rest.length || head.some(isUrlLike)) return undefined;
  return `${unknown}. If it is the server's program, it goes after \`--\`, as in\n  ${lineOf({ ...stray, command: [argument] }, without)}`;
}

function explainBesideUrl({ head, argument }: UnexpectedArgument): string | undefined {
  if (!head.some(isUrlLike)) return undefined;
  const port = /^\d{2,5}$/.test(argument)
    ? ` For the port of a login: --oauth-callback http://localhost:${argument}/callback`
    : '';
  return `Unexpected ${JSON.stringify(argument)}: all that can stand beside the URL are options.${port}`;
}

function explainMissingSeparator(stray: UnexpectedArgument): string {
  const { head, at, argument, command = [], platform } = stray;
  const rest = head.slice(at);
  // The argument is a program with its arguments in quotes, as other bridges require, and not a path with a space in
  // it.
  const isQuoted = rest.length === 1 && /^[^\s/\\]+\s/.test(argument);
  const args = isQuoted ? argument.split(/\s+/) : rest;
  const target = [...(isQuoted ? [] : runnerOf(argument)), ...args, ...command];
  const hint = platform === 'win32' ? ' (in PowerShell with its quotes)' : '';
  const whole = command.length > 0 ? "all of the server's command goes" : "the server's command goes";
  const line = lineOf({ ...stray, command: target }, head.slice(0, at));
  return `Unexpected ${JSON.stringify(argument)}: ${whole} after \`--\`${hint}, as in\n  ${line}`;
}

/** Returns the program that runs a package or a script; empty if the argument is a program itself. */
function runnerOf(argument: string): readonly string[] {
  if (/^@[\w.-]+\/[\w.-]+(@[\w.^~-]+)?$/.test(argument)) return ['npx', '-y'];
  const runner = scriptRunner(argument);
  return runner === undefined ? [] : [runner];
}

interface GivenCommand {
  readonly head: readonly string[];
  readonly command: readonly string[];
  readonly platform: NodeJS.Platform | undefined;
}

/** Explains the first argument after `--` if it cannot be a program; otherwise returns undefined. */
export function explainWrongProgram({ head, command, platform }: GivenCommand): string | undefined {
  const [program, ...args] = command;
  if (program === undefined) return undefined;
  const withoutCommand = { command: undefined, platform };
  if (isUrlLike(program) || /^(localhost|\d+(\.\d+){3}):\d+(\/|$)/i.test(program)) {
    const url = isUrlLike(program) ? program : `http://${program}`;
    return `A URL is not a command: leave out \`--\`, as in\n  ${lineOf(withoutCommand, [...head, url, ...args])}`;
  }
  if (!program.startsWith('-')) {
    return explainConfigFile({ head, at: head.length, argument: program, verb: undefined, platform });
  }
  const count = countOwnOptions(command);
  const moved = [...head, ...command.slice(0, count)];
  const rest = command.slice(count);
  const isComplete = rest.length > 0 && rest[0]?.startsWith('-') === false;
  const own = isComplete ? { command: rest, platform } : withoutCommand;
  const way =
    count === 0
      ? `name the program first, as in\n  ${lineOf({ command: ['npx', ...command], platform }, head)}`
      : `options of mcp-portage come before it, as in\n  ${lineOf(own, moved)}`;
  return `\`--\` is followed by the server's program; got the option ${showArguments([program.split('=', 1)[0] ?? ''])}: ${way}`;
}

/** Counts the leading arguments that are options of ours, with their values. */
function countOwnOptions(args: readonly string[]): number {
  let count = 0;
  while (count < args.length) {
    const argument = args[count] ?? '';
    const option = findFlag(`--${/^--(?:no-)?([\w-]+)/.exec(argument)?.[1]}`);
    if (option === undefined && !/^(--help|--version|-h|-v|-V)$/.test(argument)) break;
    const hasOwnValue =
      option === undefined || option.kind === 'flag' || option.bare !== undefined || argument.includes('=');
    count += hasOwnValue ? 1 : 2;
  }
  return count;
}

/** Returns the corrected command line, without credentials. */
export function lineOf(
  { command, platform }: Pick<UnexpectedArgument, 'command' | 'platform'>,
  head: readonly string[],
): string {
  // On Windows npx is a script, and PowerShell removes a bare `--` from a script's arguments.
  // https://github.com/npm/cli/issues/4903
  const separator = platform === 'win32' ? '"--"' : '--';
  const parts = [
    'mcp-portage',
    showArguments(head),
    ...(command === undefined ? [] : [separator, showArguments(command)]),
  ];
  return parts.filter((part) => part !== '').join(' ');
}
