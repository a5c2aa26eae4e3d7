/** What to paste into each host, as a table for the README: what `mcp-portage snippet` says, in one line each. */
import { HOSTS, type HostName, renderSnippet } from '../src/snippet.ts';

const SERVER = {
  name: 'everything',
  url: 'http://127.0.0.1:8000/mcp',
  transport: 'streamable-http',
  token: 'none',
} as const;

const TITLES: Readonly<Record<HostName, string>> = {
  'claude-code': 'Claude Code',
  'claude-desktop': 'Claude Desktop',
  cursor: 'Cursor',
  vscode: 'VS Code',
  windsurf: 'Windsurf',
  gemini: 'Gemini CLI',
  codex: 'Codex',
  'copilot-cli': 'Copilot CLI',
  opencode: 'opencode',
};

export function renderHostTable(): string {
  return ['| Client | Where | What |', '|---|---|---|', ...HOSTS.map(renderRow)].join('\n');
}

function renderRow(host: HostName): string {
  const { place, text, instead } = renderSnippet(host, [SERVER]);
  const [command] = instead.filter((line) => !/^[a-z]+:\/\//.test(line));
  const [where, what] = command === undefined ? [fileOf(place), onOneLine(text)] : ['terminal', command];
  return `| ${TITLES[host]} | ${where} | \`${what}\` |`;
}

/** Without the hints on which of several files it may be. */
function fileOf(place: string): string {
  return `\`${place.split(' ', 1)[0]}\``;
}

function onOneLine(text: string): string {
  const { $schema: _, ...members }: Record<string, unknown> = JSON.parse(text);
  return JSON.stringify(members);
}
