/** The server, and how a command is run. */
import type { OptionSpec } from './option-spec.ts';

export const SERVER_OPTIONS = [
  {
    name: 'protocol',
    group: 'protocol',
    describe: 'Era of the protocol the server speaks; auto finds out',
    kind: 'value',
    placeholder: 'era',
    choices: ['auto', 'legacy', 'modern'],
    default: 'auto',
  },
  {
    name: 'map-header',
    group: 'server',
    describe: "Tell a caller's own server process what this header of its requests says, as a variable",
    kind: 'list',
    placeholder: 'Name=VARIABLE',
    verbs: ['serve'],
    target: 'command',
  },
  {
    name: 'cwd',
    group: 'server',
    describe: 'Working directory of the server',
    kind: 'value',
    placeholder: 'directory',
    defaultNote: 'the current one',
    completes: 'directory',
    target: 'command',
  },
  {
    name: 'env',
    group: 'server',
    describe: 'Set a variable for the server; NAME alone copies it from here',
    kind: 'list',
    placeholder: 'NAME=value',
    target: 'command',
  },
  {
    name: 'inherit-env',
    group: 'server',
    describe: 'Give the server this whole environment, not just PATH, HOME and other harmless names',
    kind: 'flag',
    default: 'false',
    target: 'command',
  },
  {
    name: 'pty',
    group: 'server',
    describe: 'Run the server on a pseudo-terminal, for servers that need one',
    kind: 'flag',
    default: 'false',
    target: 'command',
  },
] as const satisfies readonly OptionSpec[];
