import { isApplicable } from './options/given-options.ts';
import { type BridgeVerb, OPTION_GROUPS, type OptionSpec } from './options/option-spec.ts';
import { envNameOf, OPTIONS, VARIABLES } from './options/option-table.ts';

const MIN_WIDTH = 72;
const MAX_WIDTH = 110;

interface Row {
  readonly left: string;
  readonly right: string;
}

interface Topic {
  readonly verb: BridgeVerb;
  readonly about: string;
  readonly usage: readonly Row[];
  readonly examples: readonly Row[];
}

const TOPICS: readonly Topic[] = [
  {
    verb: 'serve',
    about: 'serves an MCP server over HTTP, by Streamable HTTP and HTTP+SSE on one port',
    usage: [
      { left: 'mcp-portage [serve] [options] -- <command> [args...]', right: 'serve a stdio server over HTTP' },
      { left: 'mcp-portage [serve] [options] <url>', right: 'serve a remote server over HTTP' },
      { left: 'mcp-portage [serve] --config <file> [options]', right: 'serve all servers of a file' },
    ],
    examples: [
      {
        left: 'mcp-portage -- npx -y @modelcontextprotocol/server-filesystem .',
        right: 'serve the files of this directory',
      },
      { left: 'mcp-portage --isolation shared -- node server.js', right: 'one server process for all clients' },
      { left: 'mcp-portage --port 9000 --env API_KEY -- uvx some-server', right: 'pass one variable to the server' },
      { left: 'mcp-portage https://old.example/sse', right: 'let new clients use an old server' },
      { left: 'mcp-portage --config .mcp.json', right: 'serve what Claude Code uses here' },
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
      { left: 'mcp-portage connect --config <file> <name>', right: 'connect a stdio client to a server of a file' },
    ],
    examples: [
      { left: 'mcp-portage connect https://example.com/mcp', right: 'for a client that speaks stdio only' },
      {
        left: 'mcp-portage connect --bearer-token-file token https://example.com/mcp',
        right: 'the same, with a credential',
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
    examples: [{ left: 'mcp-portage probe --json https://example.com/mcp', right: 'the report for scripts' }],
  },
  {
    verb: 'snippet',
    about: 'prints what to paste into a host, so that it reaches what is served',
    usage: [
      { left: 'mcp-portage snippet --for <host> [<url>]', right: 'for the server at this address' },
      { left: 'mcp-portage snippet --for <host> --config <file>', right: 'for all servers of a file' },
    ],
    examples: [
      { left: 'mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp', right: 'for the settings of Cursor' },
    ],
  },
  {
    verb: 'report',
    about: 'says who uses what, and whether the old transport can go',
    usage: [{ left: 'mcp-portage report [--since <time>] [--url <url>]', right: 'report on who uses what' }],
    examples: [
      { left: 'mcp-portage report --since 30d --json', right: 'for scripts; exits with 0 when HTTP+SSE can go' },
    ],
  },
  {
    verb: 'top',
    about: 'shows a running bridge in the terminal',
    usage: [{ left: 'mcp-portage top <url>', right: 'show who is connected and what runs' }],
    examples: [],
  },
];

const OTHER_USAGE: readonly Row[] = [
  { left: 'mcp-portage completion bash|zsh', right: 'for source <(...): options by the Tab key' },
  { left: 'mcp-portage help <verb>', right: 'only what is about this verb' },
];
const OTHER_OPTIONS: readonly Row[] = [
  { left: '-h, --help', right: 'Show this help' },
  { left: '-v, --version', right: 'Show the version' },
];

export interface HelpRequest {
  /** Width of the terminal. */
  readonly columns: number;
  /** Only what belongs to it; undefined: everything. */
  readonly verb: BridgeVerb | undefined;
}

/** The text of --help, from the option table. */
export function renderHelp({ columns, verb }: HelpRequest): string {
  const width = Math.max(MIN_WIDTH, Math.min(columns, MAX_WIDTH));
  const topics = TOPICS.filter((topic) => verb === undefined || topic.verb === verb);
  const groups = Object.entries(OPTION_GROUPS).map(([group, title]) => ({ title, rows: rowsOf(group, verb) }));
  const tables = [...groups.filter(({ rows }) => rows.length > 0), { title: 'Other', rows: OTHER_OPTIONS }];
  const usage = [...topics.flatMap((topic) => topic.usage), ...(verb === undefined ? OTHER_USAGE : [])];
  return [
    ...wrap(introduce(topics), width),
    '',
    ...renderTable({ title: 'Usage', rows: usage }, indentOf(usage), width),
    ...tables.flatMap((table) => ['', ...renderTable(table, indentOf(tables.flatMap(({ rows }) => rows)), width)]),
    '',
    ...renderExamples(topics, width),
    ...wrap(
      `Every option can come from the environment: --max-sessions is ${envNameOf('max-sessions')}; lists are separated by commas, headers by line breaks. Durations are 500ms, 30s, 5m or 2h, a bare number is seconds. Sizes are 64k or 16m, a bare number is bytes.`,
      width,
    ),
    '',
  ].join('\n');
}

function renderExamples(topics: readonly Topic[], width: number): readonly string[] {
  const rows = topics.flatMap(({ examples }) => examples);
  return rows.length === 0 ? [] : [...renderTable({ title: 'Examples', rows }, EXAMPLE_INDENT, width), ''];
}

function introduce(topics: readonly Topic[]): string {
  const [topic, ...more] = topics;
  return topic !== undefined && more.length === 0
    ? `mcp-portage ${topic.verb}: ${topic.about}.`
    : 'mcp-portage joins any MCP client to any MCP server, over stdio, HTTP+SSE and Streamable HTTP.';
}

function rowsOf(group: string, verb: BridgeVerb | undefined): readonly Row[] {
  const options = OPTIONS.filter((option: OptionSpec) => {
    const isOfVerb = verb === undefined || isApplicable(option, { verb, target: 'any' });
    return option.group === group && isOfVerb;
  });
  const rows = options.map(rowOf);
  const variables = VARIABLES.filter((variable) => variable.group === group);
  return [...rows, ...variables.map(({ name, note }) => ({ left: name, right: note }))];
}

interface Table {
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Long examples go on a line of their own. */
const EXAMPLE_INDENT = 62;

function renderTable({ title, rows }: Table, indent: number, width: number): readonly string[] {
  return [title, ...rows.flatMap((row) => renderRow(row, indent, width))];
}

function indentOf(rows: readonly Row[]): number {
  return Math.max(...rows.map(({ left }) => left.length)) + 4;
}

function rowOf(option: OptionSpec): Row {
  const switches = option.kind === 'flag' ? `--[no-]${option.name}` : `--${option.name} <${option.placeholder}>`;
  const notes = [
    option.choices === undefined ? '' : `: ${option.choices.join(', ')}`,
    option.kind === 'list' ? ' (repeatable)' : '',
    option.kind !== 'flag' && hasDefault(option) ? ` [${option.default ?? option.defaultNote}]` : '',
  ];
  return { left: switches, right: option.describe + notes.join('') };
}

function hasDefault(option: OptionSpec): boolean {
  return option.default !== undefined || option.defaultNote !== undefined;
}

/** Where the right side would not fit beside the left, it goes on lines of its own. */
function renderRow({ left, right }: Row, indent: number, width: number): readonly string[] {
  const column = Math.min(indent, width - 40);
  const lines = wrap(right, width - column).map((line) => ' '.repeat(column) + line);
  const head = `  ${left}`;
  if (head.length + 2 > column) return [head, ...lines];
  return [head + (lines[0] ?? '').slice(head.length), ...lines.slice(1)];
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
