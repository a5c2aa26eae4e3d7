import type { Target } from '../../config/server.ts';

/** The order is the order of --help. */
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
 * What mcp-portage does with servers: serve them over HTTP, connect a stdio client to one, report on them, say how a
 * host reaches what is served, report on who uses them, show that as it happens, or log in to them and out again.
 */
export const BRIDGE_VERBS = ['serve', 'connect', 'probe', 'snippet', 'report', 'top', 'login', 'logout'] as const;
export type BridgeVerb = (typeof BRIDGE_VERBS)[number];

export interface OptionSpec {
  /** Kebab case, without the dashes. */
  readonly name: string;
  readonly group: OptionGroup;
  readonly describe: string;
  /** `flag` takes no value, `list` may be repeated. */
  readonly kind: 'value' | 'flag' | 'list';
  /** What the value is, for the documentation and completion: `<port>`. None for flags. */
  readonly placeholder?: string;
  /** What a user would write to set it; absent: nothing is set. */
  readonly default?: string;
  /** In place of the default where that depends on the surroundings. */
  readonly defaultNote?: string;
  readonly choices?: readonly string[];
  /** What completion offers where there are no choices. */
  readonly completes?: 'file' | 'directory';
  /** Absent: all of them. */
  readonly verbs?: readonly BridgeVerb[];
  /** The kinds of servers it is about; absent: any. */
  readonly targets?: readonly Target['kind'][];
  /** Between the values of a list in the environment; absent: a comma. */
  readonly separator?: 'newline';
  /** A list of `name=value`, which files and programs may write as an object. */
  readonly isMap?: true;
}
