/** Decides where an option applies, and explains why it does not apply elsewhere. */
import type { Target } from '../../config/server.ts';
import { BridgeError } from '../../errors.ts';
import { toKebabCase } from './option-names.ts';
import {
  type Application,
  type BridgeVerb,
  type CommandLineOptions,
  OPTIONS,
  type Option,
  USE_SERVERS,
} from './option-table.ts';

/**
 * The use of the program that decides which options apply. Others would have no effect, such as a port without a
 * listener, or a header for a child process.
 */
export interface OptionUse {
  readonly verb: BridgeVerb;
  /** `any` if there may be servers of several kinds. */
  readonly target: Target['kind'] | 'aggregate' | 'any';
  /** Messages spell the names of options as flags of the command line, or as fields of a program's options. */
  readonly spelling: 'flags' | 'fields';
}

export function isApplicable({ verbs, targets }: Application, use: Pick<OptionUse, 'verb' | 'target'>): boolean {
  if (!verbs.includes(use.verb)) return false;
  return targets === undefined || use.target === 'any' || targets.some((kind) => kind === use.target);
}

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
  view: '`view` only shows what was recorded',
  login: '`login` only logs in',
  logout: '`logout` only forgets a login',
  pin: '`pin` only shows a file with pins, or accepts tools',
  info: '`info` only describes this installation',
};

const STARTS_NO_SERVER: readonly BridgeVerb[] = ['snippet', 'report', 'top', 'view', 'login', 'logout', 'pin', 'info'];

/**
 * Suggests options with this word in their names: `--timeout` is for `probe`, and others are called `--connect-timeout`
 * and the like.
 */
function askForRelated(name: string, use: OptionUse): string {
  const related = OPTIONS.filter(
    (option) => isApplicable(option, use) && toKebabCase(option.name).split('-').includes(name),
  );
  return related.length === 0 ? '.' : `, or did you mean ${related.map((option) => option.flag).join(' or ')}?`;
}

function explain({ name, flag, verbs, targets = [] }: Option, use: OptionUse): string {
  const isAboutServers = USE_SERVERS.every((verb) => verbs.includes(verb)) && !verbs.includes('report');
  if (isAboutServers && STARTS_NO_SERVER.includes(use.verb)) {
    return `${flag} is about a server or how it is served; ${WHY_NOT[use.verb]}. Leave it out.`;
  }
  if (!verbs.includes(use.verb)) {
    // An option that `snippet` shares with `serve` only describes there what is served.
    const named = verbs.filter((verb) => verb !== 'snippet' || !verbs.includes('serve'));
    const places = named.map((verb) => `\`${verb}\``).join(' and ');
    return `${flag} is for ${places}; ${WHY_NOT[use.verb]}. Leave it out${askForRelated(name, use)}`;
  }
  const what = `a server that is ${targets.map((kind) => HOW_SERVERS_ARE_USED[kind]).join(' or ')}`;
  const isOfOneKind = use.target !== 'any' && use.target !== 'aggregate';
  const own = isOfOneKind ? HOW_SERVERS_ARE_USED[use.target] : 'used otherwise';
  if (use.target === 'command') {
    return `${flag} is for ${what}; this one is ${own}. Leave it out, or hand the command what it needs by its own arguments or with --env.`;
  }
  const runs = targets.includes('command') && use.target !== 'replay' ? 'runs already and is' : 'is';
  return `${flag} is for ${what}; this one ${runs} ${own}. Leave it out.`;
}

export const HOW_SERVERS_ARE_USED: Readonly<Record<Target['kind'], string>> = {
  command: 'started as a command',
  url: 'reached by its URL',
  stream: 'reached over a byte stream',
  grpc: 'reached over gRPC',
  mqtt: 'reached through a broker of MQTT',
  replay: 'replayed from a recording',
};
