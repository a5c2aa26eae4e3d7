import { readFileSync } from 'node:fs';
import test from 'ava';
import {
  clientsInLog,
  commandsOffered,
  readClaudeList,
  readCodexStatus,
  readCopilotEvents,
  readGeminiList,
  readInspectorTools,
  readOpencodeList,
} from '../../../scripts/hosts/read-output.ts';
import type { HostSays } from '../../../scripts/hosts/results.ts';

/** What the hosts really printed, by their versions. */
const recorded = (name: string) => readFileSync(new URL(`./recorded/${name}.txt`, import.meta.url), 'utf8');

const SERVER = 'mcp-portage';
const claude = (printed: string) => readClaudeList(printed, SERVER);
const gemini = (printed: string) => readGeminiList(printed, SERVER);
const codex = (printed: string) => readCodexStatus(printed, SERVER, 2);
const copilot = (printed: string) => readCopilotEvents(printed, SERVER);
const opencode = (printed: string) => readOpencodeList(printed, SERVER);
const CONNECTED = 'connected';
const NOT = 'not-connected';

for (const [name, read, kind, words] of [
  ['claude-code-2.1.331-connected', claude, CONNECTED, /^✔ Connected$/],
  ['claude-code-2.1.331-pending', claude, NOT, /Pending approval/],
  ['claude-code-2.1.331-failed', claude, NOT, /Failed to connect — ECONNREFUSED/],
  ['gemini-0.61.0-connected', gemini, CONNECTED, /^Connected$/],
  ['gemini-0.61.0-untrusted', gemini, NOT, /^Disabled$/],
  ['gemini-0.61.0-failed', gemini, NOT, /^Disconnected$/],
  ['codex-0.169.0-connected', codex, CONNECTED, /^15 tools$/],
  ['codex-0.169.0-failed', codex, NOT, /MCP startup failed/],
  ['copilot-cli-1.0.102-connected', copilot, CONNECTED, /^connected$/],
  ['copilot-cli-1.0.102-failed', copilot, NOT, /^failed$/],
  ['opencode-1.18.33-connected', opencode, CONNECTED, /^connected$/],
  ['opencode-1.18.33-failed', opencode, NOT, /^failed: SSE error: Unable to connect/],
  ['inspector-2.12.0-connected', readInspectorTools, CONNECTED, /^14 tools$/],
  ['inspector-2.12.0-failed', readInspectorTools, NOT, /ECONNREFUSED/],
] as const) {
  test(`what a host printed is read as it was meant: ${name}`, (t) => {
    const says = read(recorded(name));
    t.is(says.kind, kind);
    t.regex(says.words, words);
  });
}

for (const [host, read] of Object.entries({ claude, gemini, codex, copilot, opencode, readInspectorTools })) {
  const isRefused = (printed: string) => (read(printed) satisfies HostSays).kind === NOT;

  test(`nothing, or something else, is no connection: ${host}`, (t) => {
    t.deepEqual(read(''), { kind: NOT, words: 'it printed nothing' });
    t.true(isRefused('No MCP servers configured.'));
    t.true(isRefused('{"tools":'));
    t.true(isRefused('{\n"tools": []\n}'));
    t.is(read('x'.repeat(1000)).words.length, 200);
  });
}

test('another server that is connected does not count for ours', (t) => {
  t.is(claude('other: http://127.0.0.1/mcp (HTTP) - ✔ Connected').kind, NOT);
  t.is(gemini('✓ other: http://127.0.0.1/mcp (http) - Connected').kind, NOT);
  t.is(opencode('●  ✓ other connected').kind, NOT);
  const event = { type: 'session.mcp_server_status_changed', data: { serverName: 'other', status: 'connected' } };
  t.is(copilot(JSON.stringify(event)).kind, NOT);
  t.is(codex('{"id":2,"result":{"data":[{"name":"other","tools":{"a":{}}}]}}').kind, NOT);
});

test("clients are taken from the lines of the bridge's log that name one whole", (t) => {
  const named = { client: 'codex', clientVersion: '1', revision: '2025-06-18', transport: 'http-sse' };
  const lines = [
    'not JSON',
    JSON.stringify({ msg: 'request' }),
    JSON.stringify({ ...named, clientVersion: undefined }),
    JSON.stringify({ ...named, client: 'mcp-portage' }),
    JSON.stringify(named),
  ];
  const client = { name: 'codex', version: '1', revision: '2025-06-18', transport: 'http-sse' };
  t.deepEqual(clientsInLog(lines.join('\n')), [client]);
});

test('the commands that come with a snippet end where its notes begin', (t) => {
  const stderr = 'For a file:\n\n\nOr:\n  host mcp add a\n  host mcp add b\n\nSomething to know.\n';
  t.deepEqual(commandsOffered(stderr), ['host mcp add a', 'host mcp add b']);
  t.deepEqual(commandsOffered('For a file:\n\n  a note\n'), []);
});
