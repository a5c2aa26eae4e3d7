/** Configuration snippets for MCP hosts that connect them to the served addresses, in each host's own format. */
import { quoteWord } from './process/shown-arguments.ts';

export const HOSTS = [
  'claude-code',
  'claude-desktop',
  'cursor',
  'vscode',
  'windsurf',
  'gemini',
  'codex',
  'copilot-cli',
  'opencode',
] as const;

export type HostName = (typeof HOSTS)[number];

/** A served address. */
export interface SnippetServer {
  /** The server's name in the host: letters, digits, `_` and `-`. */
  readonly name: string;
  readonly url: string;
  readonly transport: 'streamable-http' | 'http-sse';
  /** `needed` if the address requires a token. */
  readonly token: 'needed' | 'none';
}

/**
 * A configuration for one host. `place` says which file it belongs to. `text` is a complete file that ends with a line
 * break. `instead` lists alternatives: shell commands, or links to open. `notes` lists further steps.
 */
export interface Snippet {
  readonly place: string;
  readonly text: string;
  readonly instead: readonly string[];
  readonly notes: readonly string[];
}

/** The environment variable from which a host reads the token, so that no file contains it. */
const TOKEN_VARIABLE = 'MCP_TOKEN';
const SET_TOKEN = `Set ${TOKEN_VARIABLE} to the token in the environment that the host is started in.`;

/** The kind of file that is served: one in which hosts look for a project's servers, or another one. */
export type ServedFile = 'of-project' | 'other';

/** Claude Code and Copilot CLI read the servers of a project from `.mcp.json` in its folder. */
export function servedFileOf(path: string | undefined): ServedFile {
  return path !== undefined && /(?:^|[/\\])\.mcp\.json$/.test(path) ? 'of-project' : 'other';
}

interface Host {
  readonly place: string;
  render(servers: readonly SnippetServer[]): string;
  /** Undefined if the host has no alternative for this server. */
  instead(server: SnippetServer, file: ServedFile): string | undefined;
  readonly notes: {
    readonly always: readonly string[];
    readonly withToken: readonly string[];
    /** Added if the host reads the served file as well. */
    readonly ofProject?: string;
  };
}

/** @param file the kind of the served file */
export function renderSnippet(host: HostName, servers: readonly SnippetServer[], file: ServedFile = 'other'): Snippet {
  const { place, render, instead, notes } = BY_NAME[host];
  const needsToken = servers.some(({ token }) => token === 'needed');
  return {
    place,
    text: render(servers),
    instead: servers.flatMap((server) => instead(server, file) ?? []),
    notes: [
      ...(file === 'of-project' && notes.ofProject !== undefined ? [notes.ofProject] : []),
      ...notes.always,
      ...(needsToken ? notes.withToken : []),
    ],
  };
}

const NO_COMMAND = () => undefined;
const NOTES = { always: [], withToken: [SET_TOKEN] };

const BY_NAME: Readonly<Record<HostName, Host>> = {
  'claude-code': {
    place: '.mcp.json in the folder of the project',
    render: (servers) =>
      json({
        mcpServers: byName(servers, (server) => {
          const token = `\${${TOKEN_VARIABLE}}`;
          if (isAtSocket(server)) return connected(server, token);
          const type = server.transport === 'http-sse' ? 'sse' : 'http';
          return { type, url: server.url, ...headers(server, token) };
        }),
      }),
    instead: (server, file) => {
      // For a project that scope would write to .mcp.json itself: mcp-portage would serve itself, under a name that
      // already exists there.
      const add = ['claude', 'mcp', 'add', '--scope', file === 'of-project' ? 'local' : 'project'];
      if (isAtSocket(server))
        return shell([...add, server.name, ...environment(server), '--', ...connectCommand(server)]);
      return shell([
        ...add,
        ...['--transport', server.transport === 'http-sse' ? 'sse' : 'http', server.name, server.url],
        ...headerArguments(server),
      ]);
    },
    notes: {
      always: ['Claude Code asks you to approve servers of a project when it next starts in its folder.'],
      withToken: [SET_TOKEN],
      ofProject:
        'In the folder of the file that is served, use the command: its entries have precedence over those of .mcp.json there.',
    },
  },
  'claude-desktop': {
    place: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    render: (servers) => json({ mcpServers: byName(servers, (server) => connected(server, '<token>')) }),
    instead: NO_COMMAND,
    notes: {
      always: ['Claude Desktop starts commands only, so mcp-portage connects it. Restart it after the change.'],
      withToken: ['Put the token in place of <token>: Claude Desktop replaces no variables.'],
    },
  },
  cursor: {
    place: '.cursor/mcp.json in the folder of the project, or ~/.cursor/mcp.json for all',
    render: (servers) => json({ mcpServers: byName(servers, ofCursor) }),
    instead(server) {
      const config = Buffer.from(JSON.stringify(ofCursor(server))).toString('base64');
      const query = new URLSearchParams({ name: server.name, config });
      return `cursor://anysphere.cursor-deeplink/mcp/install?${query}`;
    },
    notes: NOTES,
  },
  vscode: {
    place: '.vscode/mcp.json in the folder of the workspace',
    render: (servers) => {
      const asked = servers.some(({ token }) => token === 'needed');
      const input = { type: 'promptString', id: 'mcp-token', description: 'Token for mcp-portage', password: true };
      return json({ ...(asked && { inputs: [input] }), servers: byName(servers, ofVsCode) });
    },
    // The command can only add the server itself, not the prompt for the token, which needs the file.
    instead: (server) =>
      server.token === 'needed'
        ? undefined
        : shell(['code', '--add-mcp', JSON.stringify({ name: server.name, ...ofVsCode(server) })]),
    notes: { always: [], withToken: ['VS Code asks for the token when it first needs it, and keeps it.'] },
  },
  windsurf: {
    place: '~/.codeium/windsurf/mcp_config.json',
    render: (servers) =>
      json({
        mcpServers: byName(servers, (server) => {
          const token = `\${env:${TOKEN_VARIABLE}}`;
          return isAtSocket(server) ? connected(server, token) : { serverUrl: server.url, ...headers(server, token) };
        }),
      }),
    instead: NO_COMMAND,
    notes: NOTES,
  },
  gemini: {
    place: '.gemini/settings.json in the folder of the project, or ~/.gemini/settings.json for all',
    render: (servers) =>
      json({
        mcpServers: byName(servers, (server) => {
          const token = `\${${TOKEN_VARIABLE}}`;
          if (isAtSocket(server)) return connected(server, token);
          // Newer versions use Streamable HTTP at a `url` without a type; older ones ignore the type.
          const at = server.transport === 'http-sse' ? { type: 'sse', url: server.url } : { httpUrl: server.url };
          return { ...at, ...headers(server, token) };
        }),
      }),
    instead: (server) =>
      isAtSocket(server)
        ? shell(['gemini', 'mcp', 'add', ...environment(server), server.name, ...connectCommand(server)])
        : shell([
            ...['gemini', 'mcp', 'add', '--transport', server.transport === 'http-sse' ? 'sse' : 'http'],
            ...[server.name, server.url, ...headerArguments(server)],
          ]),
    notes: {
      always: ['Gemini CLI uses servers only in folders that you trust: it asks when it starts there.'],
      withToken: [SET_TOKEN],
    },
  },
  codex: {
    place: '~/.codex/config.toml',
    render: (servers) => `${servers.map(codexTable).join('\n\n')}\n`,
    instead(server) {
      if (needsCommand(server)) {
        return shell(['codex', 'mcp', 'add', server.name, ...environment(server), '--', ...connectCommand(server)]);
      }
      const token = server.token === 'needed' ? ['--bearer-token-env-var', TOKEN_VARIABLE] : [];
      return shell(['codex', 'mcp', 'add', server.name, '--url', server.url, ...token]);
    },
    notes: NOTES,
  },
  'copilot-cli': {
    place: '~/.copilot/mcp-config.json',
    render: (servers) => json({ mcpServers: byName(servers, ofCopilot) }),
    instead: (server) =>
      isAtSocket(server)
        ? shell(['copilot', 'mcp', 'add', server.name, ...environment(server), '--', ...connectCommand(server)])
        : shell([
            ...['copilot', 'mcp', 'add', '--transport', server.transport === 'http-sse' ? 'sse' : 'http'],
            ...[server.name, server.url, ...headerArguments(server)],
          ]),
    notes: {
      ...NOTES,
      ofProject:
        'In the folder of the file that is served, Copilot CLI reads .mcp.json itself, and entries there have precedence.',
    },
  },
  opencode: {
    place: 'opencode.json in the folder of the project, or ~/.config/opencode/opencode.json for all',
    render: (servers) =>
      json({
        $schema: 'https://opencode.ai/config.json',
        mcp: byName(servers, ofOpenCode),
      }),
    instead: NO_COMMAND,
    notes: NOTES,
  },
};

/** Only VS Code connects to sockets and pipes itself; other hosts need mcp-portage. */
function isAtSocket({ url }: SnippetServer): boolean {
  return /^(unix|pipe):/.test(url);
}

/** Codex does not support HTTP+SSE. */
function needsCommand(server: SnippetServer): boolean {
  return server.transport === 'http-sse' || isAtSocket(server);
}

function ofOpenCode(server: SnippetServer): object {
  const token = `{env:${TOKEN_VARIABLE}}`;
  if (!isAtSocket(server)) return { type: 'remote', url: server.url, enabled: true, ...headers(server, token) };
  const environment = server.token === 'needed' ? { environment: { MCP_PORTAGE_BEARER_TOKEN: token } } : {};
  return { type: 'local', command: connectCommand(server), enabled: true, ...environment };
}

/** Copilot CLI requires `tools` in every entry. */
function ofCopilot(server: SnippetServer): object {
  const token = `\${${TOKEN_VARIABLE}}`;
  const tools = ['*'];
  if (isAtSocket(server)) return { type: 'local', ...connected(server, token), tools };
  const type = server.transport === 'http-sse' ? 'sse' : 'http';
  return { type, url: server.url, ...headers(server, token), tools };
}

function ofCursor(server: SnippetServer): object {
  if (isAtSocket(server)) return connected(server, `\${env:${TOKEN_VARIABLE}}`);
  return { url: server.url, ...headers(server, `\${env:${TOKEN_VARIABLE}}`) };
}

function ofVsCode(server: SnippetServer): object {
  const type = server.transport === 'http-sse' ? 'sse' : 'http';
  // biome-ignore lint/suspicious/noTemplateCurlyInString: VS Code replaces it.
  return { type, url: server.url, ...headers(server, '${input:mcp-token}') };
}

/**
 * An entry for hosts that start commands.
 *
 * @param token a reference to a variable, in the host's syntax
 */
function connected(server: SnippetServer, token: string): object {
  const [command, ...args] = connectCommand(server);
  return { command, args, ...(server.token === 'needed' && { env: { MCP_PORTAGE_BEARER_TOKEN: token } }) };
}

function connectCommand({ url }: SnippetServer): readonly string[] {
  return ['npx', '-y', 'mcp-portage', 'connect', url];
}

/** Writes strings and keys as JSON, which for these characters is also valid TOML. */
function codexTable(server: SnippetServer): string {
  const head = `[mcp_servers.${server.name}]`;
  if (!needsCommand(server)) {
    const token = server.token === 'needed' ? [`bearer_token_env_var = ${JSON.stringify(TOKEN_VARIABLE)}`] : [];
    return [head, `url = ${JSON.stringify(server.url)}`, ...token].join('\n');
  }
  const [command, ...args] = connectCommand(server);
  const list = args.map((argument) => JSON.stringify(argument)).join(', ');
  const lines = [head, `command = ${JSON.stringify(command)}`, `args = [${list}]`];
  return (server.token === 'needed' ? [...lines, 'env_vars = ["MCP_PORTAGE_BEARER_TOKEN"]'] : lines).join('\n');
}

function environment({ token }: SnippetServer): readonly string[] {
  return token === 'needed' ? ['--env', 'MCP_PORTAGE_BEARER_TOKEN=<token>'] : [];
}

/** @param token a reference to a variable, in the host's syntax */
function headers(server: SnippetServer, token: string): object {
  return server.token === 'needed' ? { headers: { Authorization: `Bearer ${token}` } } : {};
}

/** The host expands the variable, not the shell, so the file that the host writes contains no token. */
function headerArguments({ token }: SnippetServer): readonly string[] {
  return token === 'needed' ? ['--header', `Authorization: Bearer \${${TOKEN_VARIABLE}}`] : [];
}

function byName(servers: readonly SnippetServer[], entry: (server: SnippetServer) => object): object {
  return Object.fromEntries(servers.map((server) => [server.name, entry(server)]));
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function shell(words: readonly string[]): string {
  return words.map(quoteWord).join(' ');
}

/** Converts names to ones that every host accepts. Duplicates get a number. */
export function nameForHosts(names: readonly string[]): readonly string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const base = name.slice(0, MAX_NAME_LENGTH).replaceAll(/[^A-Za-z0-9_-]+/g, '-');
    let unique = base;
    for (let count = 2; taken.has(unique); count += 1) unique = `${base}-${count}`;
    taken.add(unique);
    return unique;
  });
}

const MAX_NAME_LENGTH = 60;
