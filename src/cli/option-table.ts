/**
 * Every option, once, as data. From this table come the parsing of the command line and the groups of --help, the
 * environment names, shell completion, the spelling suggestions and the table in the README. What a value means and
 * which are allowed is in parse-value.ts; which go together is in parse-config.ts.
 */
import type { Target } from '../config.ts';

/** The order is the order of --help. */
export const OPTION_GROUPS = {
  listen: 'Listening (serve)',
  endpoints: 'Endpoints (serve)',
  access: 'Access (serve)',
  protocol: 'The server',
  server: 'The wrapped server (command)',
  remote: 'The remote server (URL)',
  sessions: 'Sessions (serve)',
  limits: 'Limits',
  probe: 'The report (probe)',
  logging: 'Logging',
} as const;

/** What mcp-portage does with a server: an HTTP face, a stdio face, or a look at it. */
export const BRIDGE_VERBS = ['serve', 'connect', 'probe'] as const;
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
  /** As a user would write it; absent: nothing is set. */
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

export const OPTIONS = [
  {
    name: 'host',
    group: 'listen',
    describe: 'Address to listen on',
    kind: 'value',
    placeholder: 'address',
    default: '127.0.0.1',
    verbs: ['serve'],
  },
  {
    name: 'port',
    group: 'listen',
    describe: 'Port to listen on; 0 picks a free one',
    kind: 'value',
    placeholder: 'port',
    default: '8000',
    verbs: ['serve'],
  },
  {
    name: 'tls-cert',
    group: 'listen',
    describe: 'Serve https with this certificate chain (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
  {
    name: 'tls-key',
    group: 'listen',
    describe: 'Private key of the certificate (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
  {
    name: 'path',
    group: 'endpoints',
    describe: 'Streamable HTTP endpoint',
    kind: 'value',
    placeholder: 'path',
    default: '/mcp',
    verbs: ['serve'],
  },
  {
    name: 'sse-path',
    group: 'endpoints',
    describe: 'HTTP+SSE: the stream old clients open',
    kind: 'value',
    placeholder: 'path',
    default: '/sse',
    verbs: ['serve'],
  },
  {
    name: 'message-path',
    group: 'endpoints',
    describe: 'HTTP+SSE: where old clients post',
    kind: 'value',
    placeholder: 'path',
    default: '/messages',
    verbs: ['serve'],
  },
  {
    name: 'base-url',
    group: 'endpoints',
    describe: 'How clients reach this process through a reverse proxy, with its path prefix',
    kind: 'value',
    placeholder: 'url',
    verbs: ['serve'],
  },
  {
    name: 'allow-host',
    group: 'access',
    describe: 'Host name clients may use, besides loopback names and the listening address',
    kind: 'list',
    placeholder: 'name',
    verbs: ['serve'],
  },
  {
    name: 'allow-origin',
    group: 'access',
    describe: 'Web origin whose pages may call, with CORS',
    kind: 'list',
    placeholder: 'origin',
    verbs: ['serve'],
  },
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
  {
    name: 'transport',
    group: 'remote',
    describe: 'How the server is spoken to; auto finds out',
    kind: 'value',
    placeholder: 'name',
    choices: ['auto', 'streamable-http', 'sse'],
    default: 'auto',
    target: 'url',
  },
  {
    name: 'header',
    group: 'remote',
    describe: `Send this header with every request; \${NAME} takes a value from the environment`,
    kind: 'list',
    placeholder: 'Name: value',
    separator: 'newline',
    target: 'url',
  },
  {
    name: 'header-file',
    group: 'remote',
    describe: 'Headers in a file, one a line; # starts a comment',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    target: 'url',
  },
  {
    name: 'bearer-token-file',
    group: 'remote',
    describe: 'Send the token in this file as a credential; read again when it changes',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    target: 'url',
  },
  {
    name: 'forward-header',
    group: 'remote',
    describe: "Let this header of the client's own requests pass to the server; no other does",
    kind: 'list',
    placeholder: 'name',
    verbs: ['serve'],
    target: 'url',
  },
  {
    name: 'ca',
    group: 'remote',
    describe: 'Trust these authorities (PEM file) instead of the built-in ones',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    target: 'url',
  },
  {
    name: 'client-cert',
    group: 'remote',
    describe: 'Certificate to show to the server (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    target: 'url',
  },
  {
    name: 'client-key',
    group: 'remote',
    describe: 'Private key of that certificate (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    target: 'url',
  },
  {
    name: 'connect-timeout',
    group: 'remote',
    describe: 'Time for name resolution, TCP and TLS; 0: no limit',
    kind: 'value',
    placeholder: 'duration',
    default: '10s',
    target: 'url',
    verbs: ['serve', 'connect'],
  },
  {
    name: 'first-byte-timeout',
    group: 'remote',
    describe: 'Time until an answer begins; 0: no limit, as a call may be long',
    kind: 'value',
    placeholder: 'duration',
    default: '0',
    target: 'url',
    verbs: ['serve', 'connect'],
  },
  {
    name: 'idle-timeout',
    group: 'remote',
    describe: 'Silence allowed in a stream, keep-alive comments count as life; 0: no limit',
    kind: 'value',
    placeholder: 'duration',
    default: '0',
    target: 'url',
    verbs: ['serve', 'connect'],
  },
  {
    name: 'call-timeout',
    group: 'remote',
    describe: 'Time for a whole call, however talkative; 0: no limit',
    kind: 'value',
    placeholder: 'duration',
    default: '0',
    target: 'url',
    verbs: ['serve', 'connect'],
  },
  {
    name: 'keep-alive',
    group: 'remote',
    describe: 'Ping a connection that was idle this long; 0: never',
    kind: 'value',
    placeholder: 'duration',
    default: '0',
    target: 'url',
    verbs: ['serve', 'connect'],
  },
  {
    name: 'isolation',
    group: 'sessions',
    describe: 'One server process per client session, or one shared by all',
    kind: 'value',
    placeholder: 'mode',
    choices: ['session', 'shared'],
    default: 'session',
    verbs: ['serve'],
    target: 'command',
  },
  {
    name: 'prewarm',
    group: 'sessions',
    describe: 'Server processes kept started ahead of the next sessions',
    kind: 'value',
    placeholder: 'count',
    default: '0',
    verbs: ['serve'],
    target: 'command',
  },
  {
    name: 'session-timeout',
    group: 'sessions',
    describe: 'End a session after this long without a request or an open stream',
    kind: 'value',
    placeholder: 'duration',
    default: '30m',
    verbs: ['serve'],
  },
  {
    name: 'max-sessions',
    group: 'sessions',
    describe: 'Refuse further sessions beyond this many',
    kind: 'value',
    placeholder: 'count',
    default: '256',
    verbs: ['serve'],
  },
  {
    name: 'poll-after',
    group: 'sessions',
    describe: 'Close a stream this old where the client can come back for the rest; 0: never',
    kind: 'value',
    placeholder: 'duration',
    default: '0',
    verbs: ['serve'],
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
    verbs: ['serve', 'connect'],
  },
  {
    name: 'shutdown-grace',
    group: 'limits',
    describe: 'Time running calls get to finish at shutdown',
    kind: 'value',
    placeholder: 'duration',
    default: '5s',
    verbs: ['serve', 'connect'],
  },
  {
    name: 'json',
    group: 'probe',
    describe: 'Print the report as JSON',
    kind: 'flag',
    default: 'false',
    verbs: ['probe'],
  },
  {
    name: 'timeout',
    group: 'probe',
    describe: 'Time for everything the probe does',
    kind: 'value',
    placeholder: 'duration',
    default: '15s',
    verbs: ['probe'],
  },
  {
    name: 'log-level',
    group: 'logging',
    describe: 'How much to log, on stderr',
    kind: 'value',
    placeholder: 'level',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    defaultNote: 'info; for probe warn',
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
