/** The hosts that the npm registry has: what each is told, and its own command that connects without a model. */
import { join } from 'node:path';
import {
  readClaudeList,
  readCodexStatus,
  readCopilotEvents,
  readGeminiList,
  readInspectorTools,
  readOpencodeList,
} from './read-output.ts';
import type { Carrier, HostSays } from './results.ts';
import type { Printed } from './run-program.ts';
import type { Access, Surroundings } from './surroundings.ts';

export interface Host {
  /** On the command line, and the folder that it is installed in. */
  readonly name: string;
  readonly title: string;
  readonly package: string;
  /** Its own command that connects, in Markdown. */
  readonly command: string;
  /** What it takes from its environment: telemetry and updates off, and what stands for the user's consent. */
  readonly variables: Readonly<Record<string, string>>;
  readonly attempts: readonly Attempt[];
  read(printed: string): HostSays;
}

type Address = 'streamable-http' | 'http-sse';

export type Attempt = {
  readonly carrier: Carrier;
  readonly configuredBy: string;
} & (
  | {
      readonly kind: 'possible';
      /** The transport that the bridge is to see. */
      readonly address: Address;
      readonly access: Access;
      /** Tells the host about the server and has it connect. */
      run(around: Surroundings): Promise<Printed>;
    }
  | { readonly kind: 'impossible'; readonly reason: string }
);

type Step = (around: Surroundings) => Promise<unknown>;
type Run = (around: Surroundings) => Promise<Printed>;

/** What snippets call a server whose address has no name. */
const SERVER = 'mcp-portage';

const claudeList: Run = async (around) => {
  // Stands for the user who approves the servers of the project.
  const settings = join(around.home, '.claude', 'settings.json');
  await around.write(settings, JSON.stringify({ enableAllProjectMcpServers: true }));
  return around.run('claude', ['mcp', 'list']);
};
const claudeFile = ({ project }: Surroundings) => join(project, '.mcp.json');

const geminiList: Run = (around) => around.run('gemini', ['mcp', 'list']);
const geminiFile = ({ project }: Surroundings) => join(project, '.gemini', 'settings.json');

const CODEX_REQUEST = 2;
/** `codex mcp list` only shows what is configured. What editors ask Codex for connects. */
const codexStatus: Run = (around) => {
  const clientInfo = { name: 'mcp-portage-hosts', title: null, version: '1' };
  const messages = [
    { id: 1, method: 'initialize', params: { clientInfo, capabilities: {} } },
    { method: 'initialized' },
    { id: CODEX_REQUEST, method: 'mcpServerStatus/list', params: { detail: 'toolsAndAuthOnly' } },
  ];
  return around.run('codex', ['app-server'], {
    input: messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join(''),
    isEnough: (stdout) => stdout.includes(`\n{"id":${CODEX_REQUEST},`) && stdout.endsWith('\n'),
  });
};
const codexFile = ({ home }: Surroundings) => join(home, '.codex', 'config.toml');

/**
 * `copilot mcp list` only shows what is configured. A prompt has Copilot CLI connect before it turns to a model, which is
 * an address here at which nobody listens, so that it asks for no login.
 */
const copilotPrompt: Run = (around) =>
  around.run('copilot', ['-p', 'hello', '--output-format', 'json'], {
    isEnough: (stdout) => readCopilotEvents(stdout, SERVER).kind === 'connected',
  });
const copilotFile = ({ home }: Surroundings) => join(home, '.copilot', 'mcp-config.json');

const opencodeList: Run = (around) => around.run('opencode', ['mcp', 'list']);
const opencodeFile = ({ project }: Surroundings) => join(project, 'opencode.json');

const INSPECTOR_METHOD = ['--method', 'tools/list'];

export const HOSTS: readonly Host[] = [
  {
    name: 'claude-code',
    title: 'Claude Code',
    package: '@anthropic-ai/claude-code',
    command: '`claude mcp list`',
    variables: {
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    attempts: [
      pasted('streamable-http', 'claude-code', 'streamable-http', claudeFile, claudeList),
      typed('streamable-http', 'claude-code', 'streamable-http', claudeList),
      withToken(pasted('streamable-http', 'claude-code', 'streamable-http', claudeFile, claudeList)),
      withToken(typed('streamable-http', 'claude-code', 'streamable-http', claudeList)),
      pasted('http-sse', 'claude-code', 'http-sse', claudeFile, claudeList),
      typed('http-sse', 'claude-code', 'http-sse', claudeList),
      pasted('connect', 'claude-desktop', 'streamable-http', claudeFile, claudeList),
    ],
    read: (printed) => readClaudeList(printed, SERVER),
  },
  {
    name: 'gemini',
    title: 'Gemini CLI',
    package: '@google/gemini-cli',
    command: '`gemini mcp list`',
    variables: { GEMINI_TELEMETRY_ENABLED: 'false', GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    attempts: [
      pasted('streamable-http', 'gemini', 'streamable-http', geminiFile, geminiList),
      typed('streamable-http', 'gemini', 'streamable-http', geminiList),
      withToken(pasted('streamable-http', 'gemini', 'streamable-http', geminiFile, geminiList)),
      withToken(typed('streamable-http', 'gemini', 'streamable-http', geminiList)),
      pasted('http-sse', 'gemini', 'http-sse', geminiFile, geminiList),
      typed('http-sse', 'gemini', 'http-sse', geminiList),
      pasted('connect', 'claude-desktop', 'streamable-http', geminiFile, geminiList),
    ],
    read: (printed) => readGeminiList(printed, SERVER),
  },
  {
    name: 'codex',
    title: 'Codex',
    package: '@openai/codex',
    command: '`codex app-server` with the request `mcpServerStatus/list`',
    variables: {},
    attempts: [
      pasted('streamable-http', 'codex', 'streamable-http', codexFile, codexStatus),
      typed('streamable-http', 'codex', 'streamable-http', codexStatus),
      withToken(pasted('streamable-http', 'codex', 'streamable-http', codexFile, codexStatus)),
      withToken(typed('streamable-http', 'codex', 'streamable-http', codexStatus)),
      {
        kind: 'impossible',
        carrier: 'http-sse',
        configuredBy: '',
        reason: 'Codex does not speak HTTP+SSE; the snippet for such an address starts `connect`',
      },
      pasted('connect', 'codex', 'http-sse', codexFile, codexStatus),
      typed('connect', 'codex', 'http-sse', codexStatus),
    ],
    read: (printed) => readCodexStatus(printed, SERVER, CODEX_REQUEST),
  },
  {
    name: 'copilot-cli',
    title: 'Copilot CLI',
    package: '@github/copilot',
    command: '`copilot -p hello --output-format json`, with a model that cannot be reached',
    variables: {
      COPILOT_OFFLINE: 'true',
      COPILOT_AUTO_UPDATE: 'false',
      COPILOT_PROVIDER_BASE_URL: 'http://127.0.0.1:9/v1',
      COPILOT_MODEL: 'none',
    },
    attempts: [
      pasted('streamable-http', 'copilot-cli', 'streamable-http', copilotFile, copilotPrompt),
      typed('streamable-http', 'copilot-cli', 'streamable-http', copilotPrompt),
      withToken(pasted('streamable-http', 'copilot-cli', 'streamable-http', copilotFile, copilotPrompt)),
      withToken(typed('streamable-http', 'copilot-cli', 'streamable-http', copilotPrompt)),
      pasted('http-sse', 'copilot-cli', 'http-sse', copilotFile, copilotPrompt),
      typed('http-sse', 'copilot-cli', 'http-sse', copilotPrompt),
      pasted('connect', 'claude-desktop', 'streamable-http', copilotFile, copilotPrompt),
    ],
    read: (printed) => readCopilotEvents(printed, SERVER),
  },
  {
    name: 'opencode',
    title: 'opencode',
    package: 'opencode-ai',
    command: '`opencode mcp list`',
    variables: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    attempts: [
      pasted('streamable-http', 'opencode', 'streamable-http', opencodeFile, opencodeList),
      withToken(pasted('streamable-http', 'opencode', 'streamable-http', opencodeFile, opencodeList)),
      pasted('http-sse', 'opencode', 'http-sse', opencodeFile, opencodeList),
      {
        kind: 'possible',
        carrier: 'connect',
        configuredBy: 'the command of `snippet --for claude-desktop`, as a local server',
        address: 'streamable-http',
        access: 'anybody',
        async run(around) {
          const command = await connectCommand(around);
          const entry = { type: 'local', command, enabled: true };
          await around.write(opencodeFile(around), JSON.stringify({ mcp: { [SERVER]: entry } }));
          return opencodeList(around);
        },
      },
    ],
    read: (printed) => readOpencodeList(printed, SERVER),
  },
  {
    name: 'inspector',
    title: 'MCP Inspector',
    package: '@modelcontextprotocol/inspector',
    command: '`mcp-inspector --cli … --method tools/list`',
    variables: {},
    attempts: [
      inspected('streamable-http', '--transport', 'http'),
      inspected('streamable-http', '--transport', 'http', '--protocol-era', 'modern'),
      inspected('http-sse', '--transport', 'sse'),
      {
        kind: 'possible',
        carrier: 'connect',
        configuredBy: 'the command of `snippet --for claude-desktop`',
        address: 'streamable-http',
        access: 'anybody',
        run: async (around) =>
          around.run('mcp-inspector', ['--cli', ...(await connectCommand(around)), ...INSPECTOR_METHOD]),
      },
    ],
    read: readInspectorTools,
  },
];

/** The snippet is the whole configuration. */
function pasted(
  carrier: Carrier,
  snippetFor: string,
  address: Address,
  file: (around: Surroundings) => string,
  list: Run,
): Attempt {
  const configure: Step = async (around) => {
    const { text } = await around.snippet(snippetFor, around.bridge.urls[address]);
    await around.write(file(around), text);
  };
  return attempt(carrier, `\`snippet --for ${snippetFor}\``, address, configure, list);
}

/** A shell runs the command that comes with the snippet. */
function typed(carrier: Carrier, snippetFor: string, address: Address, list: Run): Attempt {
  const configure: Step = async (around) => {
    const { commands } = await around.snippet(snippetFor, around.bridge.urls[address]);
    const [command] = commands;
    if (command === undefined) throw new Error(`the snippet for ${snippetFor} has no command`);
    const { end, stderr } = await around.run('sh', ['-c', command]);
    if (end.kind !== 'exited' || end.code !== 0) throw new Error(`\`${command}\` failed: ${stderr}`);
  };
  return attempt(carrier, `the command with \`snippet --for ${snippetFor}\``, address, configure, list);
}

function attempt(carrier: Carrier, configuredBy: string, address: Address, configure: Step, list: Run): Attempt {
  return {
    kind: 'possible',
    carrier,
    configuredBy,
    address,
    access: 'anybody',
    async run(around) {
      await configure(around);
      return list(around);
    },
  };
}

/** The same with a bridge that asks for a token, which the snippet names by its variable. */
function withToken(attempt: Attempt): Attempt {
  if (attempt.kind === 'impossible') return attempt;
  return { ...attempt, access: 'token', configuredBy: `${attempt.configuredBy}, with a token` };
}

function inspected(address: Address, ...options: readonly string[]): Attempt {
  return {
    kind: 'possible',
    carrier: address,
    configuredBy: `the URL and \`${options.join(' ')}\``,
    address,
    access: 'anybody',
    run: (around) =>
      around.run('mcp-inspector', ['--cli', around.bridge.urls[address], ...options, ...INSPECTOR_METHOD]),
  };
}

/** For hosts that start commands and whose own form of it has no snippet. */
async function connectCommand(around: Surroundings): Promise<readonly string[]> {
  const { text } = await around.snippet('claude-desktop', around.bridge.urls['streamable-http']);
  const { mcpServers } = JSON.parse(text);
  const { command, args } = mcpServers[SERVER];
  return [command, ...args];
}
