/** The command line of `connect` for the aggregate that a probe is about: the probe is a client of that command. */
import type { ChildConfig, CommandTarget } from '../config/server.ts';
import { showArguments } from '../process/shown-arguments.ts';
import { type BridgeCommand, configFileOf } from './command-line.ts';
import { optionOf } from './options/option-table.ts';
import type { Environment } from './parse/servers/child-environment.ts';

interface AggregateCommand {
  readonly target: CommandTarget;
  readonly child: ChildConfig;
  /** The words that name the aggregate on a command line. */
  readonly shown: string;
}

/** @param ownCommand the command that starts this program */
export function aggregateCommand(
  command: BridgeCommand,
  ownCommand: readonly string[],
  { env, cwd }: { readonly env: Environment; readonly cwd: string },
): AggregateCommand {
  const [program = '', ...before] = ownCommand;
  const { names, options } = command;
  const given = [...options].flatMap(([name, texts]) => {
    const { verbs, flag } = optionOf(name);
    return verbs.includes('connect') ? texts.map((text) => `${flag}=${text}`) : [];
  });
  const file = configFileOf(command, env) ?? '';
  const shows = options.get('aggregate')?.at(-1) === 'search' ? '--aggregate=search' : '--aggregate';
  const set = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return {
    // The report has the reasons of failures, so the log of that process need not have more than warnings.
    target: { kind: 'command', command: program, args: [...before, 'connect', '--log-level=warn', ...given, ...names] },
    // The process runs this program, so it gets the whole environment that this program has read.
    child: { cwd, env: Object.fromEntries(set), withheldEnv: [], pty: false },
    shown: showArguments(['--config', file, shows, ...names]),
  };
}
