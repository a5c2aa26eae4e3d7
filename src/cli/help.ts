import { envNameOf, OPTION_GROUPS, OPTIONS, type OptionSpec } from './options.ts';

const MIN_WIDTH = 72;
const MAX_WIDTH = 110;

interface Row {
  readonly left: string;
  readonly right: string;
}

const EXAMPLES: readonly Row[] = [
  {
    left: 'mcp-portage -- npx -y @modelcontextprotocol/server-filesystem .',
    right: 'serve the files of this directory',
  },
  { left: 'mcp-portage --isolation shared -- node server.js', right: 'one server process for all clients' },
  { left: 'mcp-portage --port 9000 --env API_KEY -- uvx some-server', right: 'hand one variable on to the server' },
  { left: 'source <(mcp-portage completion bash)', right: 'complete options with the Tab key' },
];

/** The text of --help, from the option table. `columns`: width of the terminal. */
export function renderHelp(columns: number): string {
  const width = Math.max(MIN_WIDTH, Math.min(columns, MAX_WIDTH));
  const groups = Object.entries(OPTION_GROUPS).map(([group, title]) => ({
    title,
    rows: OPTIONS.filter((option: OptionSpec) => option.group === group).map(rowOf),
  }));
  const other = [
    { left: '-h, --help', right: 'Show this help' },
    { left: '-v, --version', right: 'Show the version' },
  ];
  const tables = [...groups, { title: 'Other', rows: other }];
  const indent = Math.max(...tables.flatMap(({ rows }) => rows.map(({ left }) => left.length))) + 4;
  return [
    ...wrap('mcp-portage gives any stdio MCP server an HTTP face, for Streamable HTTP and HTTP+SSE clients.', width),
    '',
    'Usage',
    '  mcp-portage [serve] [options] -- <command> [args...]',
    '  mcp-portage completion bash|zsh',
    ...tables.flatMap(({ title, rows }) => ['', title, ...rows.flatMap((row) => renderRow(row, indent, width))]),
    '',
    'Examples',
    ...EXAMPLES.flatMap((row) => renderRow(row, 2 + Math.max(...EXAMPLES.map(({ left }) => left.length)) + 2, width)),
    '',
    ...wrap(
      `Every option can come from the environment: --max-sessions is ${envNameOf('max-sessions')}; lists are separated by commas. Durations are 500ms, 30s, 5m or 2h, a bare number is seconds. Sizes are 64k or 16m, a bare number is bytes.`,
      width,
    ),
    '',
  ].join('\n');
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
