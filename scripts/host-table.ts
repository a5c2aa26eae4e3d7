/** What to paste into some hosts, as a table for the README: what `mcp-portage snippet` says, in one line each. */
import { type HostName, renderSnippet } from '../src/snippet.ts';

const SERVER = {
  name: 'everything',
  url: 'http://127.0.0.1:8000/mcp',
  transport: 'streamable-http',
  token: 'none',
} as const;

/** One of each kind: a command to run, a file for a client that starts programs, and a file for one that takes URLs. */
const SHOWN: readonly (readonly [host: HostName, title: string])[] = [
  ['claude-code', 'Claude Code'],
  ['claude-desktop', 'Claude Desktop'],
  ['cursor', 'Cursor'],
];

export function renderHostTable(): string {
  return ['| Client | Where | What |', '|---|---|---|', ...SHOWN.map(renderRow)].join('\n');
}

function renderRow([host, title]: (typeof SHOWN)[number]): string {
  const { place, text, instead } = renderSnippet(host, [SERVER]);
  const [command] = instead.filter((line) => !/^[a-z]+:\/\//.test(line));
  const [where, what] = command === undefined ? [fileOf(place), onOneLine(text)] : ['terminal', command];
  return `| ${title} | ${where} | \`${what}\` |`;
}

/** Without the hints on which of several files it may be. */
function fileOf(place: string): string {
  return `\`${place.split(' ', 1)[0]}\``;
}

function onOneLine(text: string): string {
  const { $schema: _, ...members }: Record<string, unknown> = JSON.parse(text);
  return JSON.stringify(members);
}
