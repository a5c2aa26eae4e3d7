import type { Target } from '../../config.ts';

/** The order is the order of --help. */
export const OPTION_GROUPS = {
  servers: 'Several servers',
  listen: 'Listening (serve)',
  endpoints: 'Endpoints (serve)',
  access: 'Access (serve)',
  cluster: 'Several replicas (serve)',
  protocol: 'The server',
  server: 'The wrapped server (command)',
  remote: 'The remote server (URL)',
  login: 'Logging in at the remote server (URL)',
  sessions: 'Sessions (serve)',
  limits: 'Limits',
  observing: 'What is seen of it',
  probe: 'The report (probe)',
  report: 'The report (report)',
  snippet: 'For a host (snippet)',
  logging: 'Logging',
} as const;

/**
 * What mcp-portage does with servers: serve them over HTTP, connect a stdio client to one, report on them, say how a
 * host reaches what is served, report on who uses them, or show that as it happens.
 */
export const BRIDGE_VERBS = ['serve', 'connect', 'probe', 'snippet', 'report', 'top'] as const;
export type BridgeVerb = (typeof BRIDGE_VERBS)[number];

export interface OptionSpec {
  /** Kebab case, without the dashes. */
  readonly name: string;
  readonly group: keyof typeof OPTION_GROUPS;
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
  /** The kind of server it is about; absent: any. */
  readonly target?: Target['kind'];
  /** Between the values of a list in the environment; absent: a comma. */
  readonly separator?: 'newline';
}
