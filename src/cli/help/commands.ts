/** The commands with their purpose and usage, as data for --help and for the manual page. */
import type { BridgeVerb, OptionName } from '../options/option-table.ts';

/** A line of a table with two columns. */
export interface Row {
  readonly left: string;
  readonly right: string;
}

export interface Command {
  readonly verb: BridgeVerb;
  /** Completes "mcp-portage <verb>:". */
  readonly about: string;
  readonly usage: readonly Row[];
  /** The options that the help of the command leads with, most used first. Their groups have the others. */
  readonly own: readonly OptionName[];
  readonly examples: readonly Row[];
}

export const SUMMARY = 'mcp-portage joins any MCP client to any MCP server, over stdio, HTTP+SSE and Streamable HTTP.';

/** The most common tasks. */
export const FIVE_TASKS: readonly Row[] = [
  { left: 'mcp-portage -- <command> [args...]', right: 'Serve a stdio server over HTTP' },
  { left: 'mcp-portage <url>', right: 'Serve a remote server to every client' },
  { left: 'mcp-portage --config <file>', right: 'Serve all servers of a file' },
  { left: 'mcp-portage connect <url>', right: 'Connect a stdio client to a server' },
  { left: 'mcp-portage probe <url>', right: 'Show what a server speaks' },
];

/** The options in the overview, each with a description that fits on one line. */
export const COMMON_OPTIONS: readonly { readonly name: OptionName; readonly brief: string }[] = [
  { name: 'port', brief: 'Port to listen on [8000]' },
  { name: 'env', brief: 'Set or pass on a variable for the server' },
  { name: 'isolation', brief: 'One server process per session, or shared' },
  { name: 'authToken', brief: 'Require a bearer token' },
  { name: 'logLevel', brief: 'How much to log to stderr [info]' },
];

/** Commands that are not in `FIVE_TASKS`. */
export const MORE_COMMANDS: readonly Row[] = [
  { left: 'snippet', right: 'Print the configuration of a host for what is served' },
  { left: 'report', right: 'Report who uses what, and whether HTTP+SSE can go' },
  { left: 'top, view', right: 'Show a running bridge in the terminal, or recorded messages' },
  { left: 'login, logout', right: 'Log in to a remote server ahead of time, and out again' },
  { left: 'completion', right: 'Print a completion script for bash, zsh or fish' },
];

export const COMMANDS: readonly Command[] = [
  {
    verb: 'serve',
    about: 'serves MCP servers over HTTP: Streamable HTTP and HTTP+SSE on one port',
    usage: [
      { left: 'mcp-portage [serve] [options] -- <command> [args...]', right: 'serve a stdio server over HTTP' },
      { left: 'mcp-portage [serve] [options] <url>', right: 'serve a remote server over HTTP' },
      { left: 'mcp-portage [serve] --config <file> [options]', right: 'serve all servers of a file' },
    ],
    own: [
      'config',
      'aggregate',
      'host',
      'port',
      'allowHost',
      'allowOrigin',
      'authToken',
      'allowAnonymous',
      'baseUrl',
      'sse',
      'env',
      'isolation',
      'header',
      'status',
      'logLevel',
    ],
    examples: [
      {
        left: 'mcp-portage -- npx -y @modelcontextprotocol/server-filesystem .',
        right: 'serve the files of this directory',
      },
      { left: 'mcp-portage --isolation shared -- node server.js', right: 'one server process for all clients' },
      { left: 'mcp-portage --port 9000 --env KEY -- uvx mcp-server-time', right: 'pass one variable to the server' },
      { left: 'mcp-portage https://old.example/sse', right: 'let new clients use an old server' },
      { left: 'mcp-portage --config .mcp.json', right: 'serve what Claude Code uses here' },
      { left: 'mcp-portage --config .mcp.json --aggregate', right: 'the same, with one address for all' },
    ],
  },
  {
    verb: 'connect',
    about: 'connects a stdio client to a server; the client starts it',
    usage: [
      { left: 'mcp-portage connect [options] <url>', right: 'connect a stdio client to a remote server' },
      {
        left: 'mcp-portage connect [options] -- <command> [args...]',
        right: 'connect a stdio client to a stdio server',
      },
      {
        left: 'mcp-portage connect --config <file> [<name>...]',
        right: 'connect a stdio client to servers of a file, several as one',
      },
    ],
    own: ['config', 'aggregate', 'env', 'header', 'bearerTokenFile', 'login', 'logLevel'],
    examples: [
      { left: 'mcp-portage connect https://example.com/mcp', right: 'for a client that only speaks stdio' },
      {
        left: 'mcp-portage connect --bearer-token-file token https://example.com/mcp',
        right: 'the same, with a bearer token',
      },
    ],
  },
  {
    verb: 'probe',
    about: 'reports what a server speaks and which clients can use it',
    usage: [
      { left: 'mcp-portage probe [options] <url>', right: 'report on a remote server' },
      { left: 'mcp-portage probe [options] -- <command> [args...]', right: 'report on a stdio server' },
      { left: 'mcp-portage probe --config <file> [<name>...]', right: 'report on the servers of a file' },
    ],
    own: ['json', 'timeout', 'header'],
    examples: [{ left: 'mcp-portage probe --json https://example.com/mcp', right: 'the report for scripts' }],
  },
  {
    verb: 'snippet',
    about: 'prints the configuration that lets a host reach what is served',
    usage: [
      { left: 'mcp-portage snippet [--for <host>] [<url>]', right: 'for the server at this address' },
      { left: 'mcp-portage snippet [--for <host>] --config <file>', right: 'for all servers of a file' },
    ],
    own: ['for'],
    examples: [
      { left: 'mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp', right: 'for the settings of Cursor' },
    ],
  },
  {
    verb: 'report',
    about: 'reports who uses what, and whether the old transport can go',
    usage: [{ left: 'mcp-portage report [--since <time>] [--url <url>]', right: 'report on who uses what' }],
    own: ['since', 'url', 'all', 'json', 'statusToken', 'stateDir'],
    examples: [
      { left: 'mcp-portage report --since 30d --json', right: 'for scripts; exits with 0 when HTTP+SSE can go' },
    ],
  },
  {
    verb: 'top',
    about: 'shows a running bridge in the terminal',
    usage: [{ left: 'mcp-portage top <url>', right: 'show who is connected and what runs' }],
    own: ['all', 'statusToken'],
    examples: [],
  },
  {
    verb: 'view',
    about: 'shows the messages of a recording, or of a running bridge, as calls',
    usage: [
      { left: 'mcp-portage view [options] <file>', right: 'show what --record wrote to this file' },
      { left: 'mcp-portage view [options] <url>', right: 'follow a bridge that was started with --inspect' },
    ],
    own: ['follow', 'errors', 'method', 'client', 'server', 'full', 'json', 'statusToken'],
    examples: [
      { left: 'mcp-portage view --errors session.jsonl', right: 'what went wrong' },
      { left: "mcp-portage view --full --method 'tools/*' session.jsonl", right: 'calls of tools with all messages' },
    ],
  },
  {
    verb: 'login',
    about: 'logs in to a server ahead of time, or lists the logins that are kept',
    usage: [
      { left: 'mcp-portage login [options] <url>', right: 'log in to a remote server' },
      { left: 'mcp-portage login --config <file> [<name>...]', right: 'log in to the servers of a file' },
      { left: 'mcp-portage login --status', right: 'list the logins that are kept' },
    ],
    own: ['config', 'oauthGrant', 'oauthClientId', 'oauthScope', 'oauthBrowser', 'stateDir'],
    examples: [],
  },
  {
    verb: 'logout',
    about: 'forgets a login, and has its tokens revoked where the server offers that',
    usage: [{ left: 'mcp-portage logout [options] <url>', right: 'forget the login for a remote server' }],
    own: ['config', 'stateDir'],
    examples: [],
  },
  {
    verb: 'pin',
    about: 'shows the pins of tools in a file, and accepts tools that have changed or appeared since',
    usage: [
      { left: 'mcp-portage pin <file>', right: 'show what is pinned, and what differs' },
      { left: 'mcp-portage pin --accept <file> [<tool>...]', right: 'accept these tools, or all that differ' },
    ],
    own: ['accept'],
    examples: [],
  },
  {
    verb: 'info',
    about: 'describes this installation for a bug report, without secrets; starts nothing',
    usage: [{ left: 'mcp-portage info [--json]', right: 'show versions, files of hosts, and where state is kept' }],
    own: ['json', 'stateDir'],
    examples: [],
  },
];

export const OTHER_USAGE: readonly Row[] = [
  { left: 'mcp-portage completion bash|zsh|fish', right: 'print a completion script for this shell' },
  { left: 'mcp-portage help <command>', right: 'show what a command does, and its most used options' },
  { left: 'mcp-portage help [<command>] <group>', right: 'show a group of options' },
  { left: 'mcp-portage help groups', right: 'list the groups of options' },
  { left: 'mcp-portage help <ERR_...>', right: 'explain an error by its code' },
  { left: 'mcp-portage help all', right: 'show everything' },
];

export const OTHER_OPTIONS: readonly Row[] = [
  { left: '-h, --help', right: 'Show help on the command' },
  { left: '-v, --version', right: 'Show the version' },
];

export const OF_VALUES =
  'Every option can come from the environment: --max-sessions is MCP_PORTAGE_MAX_SESSIONS, --no-sse is MCP_PORTAGE_SSE=false; lists are separated by commas, headers by line breaks. Durations are 500ms, 30s, 5m or 2h, a bare number is seconds. Sizes are 64k or 16m, a bare number is bytes.';
