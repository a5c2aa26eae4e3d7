import type { Target } from '../../config/server.ts';

/** Headings of the groups, in the order of --help. */
export const OPTION_GROUPS = {
  servers: 'Configuration file',
  listen: 'Listening (serve)',
  endpoints: 'Endpoints (serve)',
  access: 'Access (serve)',
  hubs: 'Calling hubs (serve)',
  cluster: 'Several replicas (serve)',
  protocol: 'Every server',
  server: 'Servers started as a command',
  remote: 'Remote servers (URL)',
  login: 'Logging in to remote servers (URL)',
  sessions: 'Sessions (serve)',
  limits: 'Limits',
  observing: 'Observing',
  probe: 'Reports (probe, report)',
  report: 'Usage (report)',
  snippet: 'Snippets (snippet)',
  logging: 'Logging',
} as const;
export type OptionGroup = keyof typeof OPTION_GROUPS;

/**
 * The commands for servers: `serve` them over HTTP, `connect` a stdio client to one, `probe` them, print a `snippet`
 * for hosts, `report` on their use, show it live in `top`, and `login` or `logout`.
 */
export const BRIDGE_VERBS = ['serve', 'connect', 'probe', 'snippet', 'report', 'top', 'login', 'logout'] as const;
export type BridgeVerb = (typeof BRIDGE_VERBS)[number];

export interface OptionSpec {
  /** The name in kebab case, without leading dashes. */
  readonly name: string;
  readonly group: OptionGroup;
  readonly describe: string;
  /** A `flag` takes no value, and a `list` may be repeated. */
  readonly kind: 'value' | 'flag' | 'list';
  /** A name for the value in documentation and completion, such as `<port>`. Flags have none. */
  readonly placeholder?: string;
  /** The default, as a user would write it. Absent: the option is not set by default. */
  readonly default?: string;
  /** A description of a default that depends on other settings, in place of `default`. */
  readonly defaultNote?: string;
  readonly choices?: readonly string[];
  /** The kind of path that shells complete for an option without `choices`. */
  readonly completes?: 'file' | 'directory';
  /** The commands that the option applies to. Absent: all commands. */
  readonly verbs?: readonly BridgeVerb[];
  /** The kinds of servers that the option applies to. Absent: all kinds. */
  readonly targets?: readonly Target['kind'][];
  /** The separator of a list's values in the environment. Absent: a comma. */
  readonly separator?: 'newline';
  /** A list of `name=value`, which files and programs may write as an object. */
  readonly isMap?: true;
}
