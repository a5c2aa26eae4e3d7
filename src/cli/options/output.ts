/** Options for reports, snippets and logs. */
import { HOSTS } from '../../snippet.ts';
import type { OptionSpec } from './option-spec.ts';

export const OUTPUT_OPTIONS = [
  {
    name: 'json',
    group: 'probe',
    describe: 'Print the report as JSON',
    kind: 'flag',
    default: 'false',
    verbs: ['probe', 'report'],
  },
  {
    name: 'timeout',
    group: 'probe',
    describe: 'Time limit for the whole probe',
    kind: 'value',
    placeholder: 'duration',
    defaultNote: '15s; 2m for a command, 5m with a login',
    verbs: ['probe'],
  },
  {
    name: 'for',
    group: 'snippet',
    describe: 'The host to print the snippet for; all of them unless one is named',
    kind: 'value',
    placeholder: 'host',
    choices: HOSTS,
    verbs: ['snippet'],
  },
  {
    name: 'log-level',
    group: 'logging',
    describe: 'How much to log to stderr',
    kind: 'value',
    placeholder: 'level',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    defaultNote: 'info; warn for probe, login and logout',
  },
  {
    name: 'log-format',
    group: 'logging',
    describe: 'Log for people or for programs',
    kind: 'value',
    placeholder: 'format',
    choices: ['pretty', 'json'],
    defaultNote: 'pretty on a terminal, else json',
  },
] as const satisfies readonly OptionSpec[];
