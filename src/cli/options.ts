/**
 * Every option, once, as data. From this table come the yargs options and the groups of --help, the environment
 * names, shell completion, the spelling suggestions and the table in the README. What a value means and which are
 * allowed is in parse-value.ts; which go together is in parse-config.ts.
 */

/** The order is the order of --help. */
export const OPTION_GROUPS = {
  listen: 'Listening',
  endpoints: 'Endpoints',
  access: 'Access',
  server: 'The wrapped server',
  sessions: 'Sessions',
  limits: 'Limits',
  logging: 'Logging',
} as const;

export interface OptionSpec {
  /** Kebab case, without the dashes. */
  readonly name: string;
  readonly group: keyof typeof OPTION_GROUPS;
  readonly describe: string;
  /** `flag` takes no value, `list` may be repeated. */
  readonly kind: 'value' | 'flag' | 'list';
  /** What the value is, for the documentation and completion: `<port>`. None for flags. */
  readonly placeholder?: string;
  /** As a user would write it; absent: nothing is set. */
  readonly default?: string;
  /** In place of the default where that depends on the surroundings. */
  readonly defaultNote?: string;
  readonly choices?: readonly string[];
  /** What completion offers where there are no choices. */
  readonly completes?: 'file' | 'directory';
}

export const OPTIONS = [
  {
    name: 'host',
    group: 'listen',
    describe: 'Address to listen on',
    kind: 'value',
    placeholder: 'address',
    default: '127.0.0.1',
  },
  {
    name: 'port',
    group: 'listen',
    describe: 'Port to listen on; 0 picks a free one',
    kind: 'value',
    placeholder: 'port',
    default: '8000',
  },
  {
    name: 'tls-cert',
    group: 'listen',
    describe: 'Serve https with this certificate chain (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
  },
  {
    name: 'tls-key',
    group: 'listen',
    describe: 'Private key of the certificate (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
  },
  {
    name: 'path',
    group: 'endpoints',
    describe: 'Streamable HTTP endpoint',
    kind: 'value',
    placeholder: 'path',
    default: '/mcp',
  },
  {
    name: 'sse-path',
    group: 'endpoints',
    describe: 'HTTP+SSE: the stream old clients open',
    kind: 'value',
    placeholder: 'path',
    default: '/sse',
  },
  {
    name: 'message-path',
    group: 'endpoints',
    describe: 'HTTP+SSE: where old clients post',
    kind: 'value',
    placeholder: 'path',
    default: '/messages',
  },
  {
    name: 'base-url',
    group: 'endpoints',
    describe: 'How clients reach this process through a reverse proxy, with its path prefix',
    kind: 'value',
    placeholder: 'url',
  },
  {
    name: 'allow-host',
    group: 'access',
    describe: 'Host name clients may use, besides loopback names and the listening address',
    kind: 'list',
    placeholder: 'name',
  },
  {
    name: 'allow-origin',
    group: 'access',
    describe: 'Web origin whose pages may call, with CORS',
    kind: 'list',
    placeholder: 'origin',
  },
  {
    name: 'cwd',
    group: 'server',
    describe: 'Working directory of the server',
    kind: 'value',
    placeholder: 'directory',
    defaultNote: 'the current one',
    completes: 'directory',
  },
  {
    name: 'env',
    group: 'server',
    describe: 'Set a variable for the server; NAME alone copies it from here',
    kind: 'list',
    placeholder: 'NAME=value',
  },
  {
    name: 'inherit-env',
    group: 'server',
    describe: 'Give the server this whole environment, not just PATH, HOME and other harmless names',
    kind: 'flag',
    default: 'false',
  },
  {
    name: 'pty',
    group: 'server',
    describe: 'Run the server on a pseudo-terminal, for servers that need one',
    kind: 'flag',
    default: 'false',
  },
  {
    name: 'isolation',
    group: 'sessions',
    describe: 'One server process per client session, or one shared by all',
    kind: 'value',
    placeholder: 'mode',
    choices: ['session', 'shared'],
    default: 'session',
  },
  {
    name: 'prewarm',
    group: 'sessions',
    describe: 'Server processes kept started ahead of the next sessions',
    kind: 'value',
    placeholder: 'count',
    default: '0',
  },
  {
    name: 'session-timeout',
    group: 'sessions',
    describe: 'End a session after this long without a request or an open stream',
    kind: 'value',
    placeholder: 'duration',
    default: '30m',
  },
  {
    name: 'max-sessions',
    group: 'sessions',
    describe: 'Refuse further sessions beyond this many',
    kind: 'value',
    placeholder: 'count',
    default: '256',
  },
  {
    name: 'max-message-bytes',
    group: 'limits',
    describe: 'Largest single message, either way',
    kind: 'value',
    placeholder: 'size',
    default: '16m',
  },
  {
    name: 'request-timeout',
    group: 'limits',
    describe: 'Silence allowed to one call (progress and questions to the user count as life); 0: no limit',
    kind: 'value',
    placeholder: 'duration',
    default: '5m',
  },
  {
    name: 'shutdown-grace',
    group: 'limits',
    describe: 'Time running calls get to finish at shutdown',
    kind: 'value',
    placeholder: 'duration',
    default: '5s',
  },
  {
    name: 'log-level',
    group: 'logging',
    describe: 'How much to log, on stderr',
    kind: 'value',
    placeholder: 'level',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
  },
  {
    name: 'log-format',
    group: 'logging',
    describe: 'Lines for people or for programs',
    kind: 'value',
    placeholder: 'format',
    choices: ['pretty', 'json'],
    defaultNote: 'pretty on a terminal, else json',
  },
] as const satisfies readonly OptionSpec[];

export type OptionName = (typeof OPTIONS)[number]['name'];

const byName: ReadonlyMap<string, OptionSpec> = new Map(OPTIONS.map((option) => [option.name, option]));

export function findOption(name: string): OptionSpec | undefined {
  return byName.get(name);
}

export function isOptionName(name: string): name is OptionName {
  return byName.has(name);
}

/** Prefix of everything the bridge itself reads from the environment; no such name is ever passed to the child. */
export const ENV_PREFIX = 'MCP_PORTAGE_';

/** `max-sessions` → `MCP_PORTAGE_MAX_SESSIONS`. */
export function envNameOf(optionName: string): string {
  return ENV_PREFIX + optionName.toUpperCase().replaceAll('-', '_');
}
