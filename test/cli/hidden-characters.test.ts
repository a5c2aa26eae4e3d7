/** What peers have chosen, on its way to the log and to a terminal, source by source. Needs a current build. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { initialize, notification, openHttpSession, POST_HEADERS } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';
import { finishCommand } from './finish-command.ts';

/** One of each kind, between letters by which the text is found again. */
const nasty = (name: string): string =>
  `${name}\u202eA\u200bB\u2066C\u{e0041}D\u009b31mE\u001b[2KF\ufeffG\u200fH\u0007I\nJ`;
const shown = /ABCD(31m)?EFGHIJ/;
/** A log line is one line; a report has several. */
const CONTROL = /(?!\n)\p{Cc}/u;
const HIDDEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/** A legacy server of a few lines whose every text is nasty. */
const SERVER = `
const nasty = ${nasty.toString()};
process.stderr.write(nasty('stderr').replace('\\n', '') + '\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  if (method === 'initialize') {
    say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: nasty('server'), version: nasty('1') } } });
  } else if (method === 'tools/list') {
    say({ id, result: { tools: [{ name: nasty('tool'), inputSchema: { type: 'object' } }] } });
  } else if (id !== undefined) say({ id, error: { code: -32601, message: nasty('no') } });
  if (method === 'notifications/initialized') say({ id: nasty('unasked'), result: {} });
});
`;

function program(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-nasty-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'server.cjs');
  writeFileSync(path, SERVER);
  return path;
}

async function serve(t: ExecutionContext): Promise<Bridge> {
  const bridge = await startBridge(['--log-level', 'trace', '--', process.execPath, program(t)]);
  t.teardown(() => bridge.stop());
  return bridge;
}

/** The lines that say something of it. Fails if any line holds what is hidden. */
async function linesOf(t: ExecutionContext, { logs }: Bridge, name: string): Promise<readonly string[]> {
  const find = () => logs.map((line) => JSON.stringify(line)).filter((line) => line.includes(name));
  const found = await waitFor(() => (find().length > 0 ? find() : undefined), { message: `a line about ${name}` });
  for (const line of logs.map((entry) => Object.values(entry).join(' '))) {
    t.notRegex(line, HIDDEN);
    t.notRegex(line, CONTROL);
  }
  return found;
}

test('a line that a server writes to stderr', async (t) => {
  const bridge = await serve(t);
  await openHttpSession(Number(bridge.url.port));
  for (const line of await linesOf(t, bridge, 'stderr')) if (line.includes('stderrA')) t.regex(line, shown);
});

test('the id of an answer that nobody waits for', async (t) => {
  const bridge = await serve(t);
  const session = await openHttpSession(Number(bridge.url.port));
  await session.post(notification('notifications/initialized'));
  for (const line of await linesOf(t, bridge, 'unasked')) t.regex(line, shown);
});

test('the method of a client’s message', async (t) => {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: nasty('client'), version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const message = { jsonrpc: '2.0', method: nasty('method'), params: { _meta: meta } };
  for (const format of ['json', 'pretty']) {
    const options = ['--log-level', 'trace', '--log-format', format];
    const command = [...BRIDGE_COMMAND, 'connect', ...options, '--', process.execPath, program(t)];
    const { stderr } = await finishCommand(command, `${JSON.stringify(message)}\n`);
    t.regex(stderr, /"method":"methodABCD/);
    t.notRegex(stderr, HIDDEN);
    t.notRegex(stderr, CONTROL);
  }
});

test('the User-Agent of a client, and the path it asks for', async (t) => {
  const bridge = await serve(t);
  const key = 'sk-live-4eC39HqLyjWDarjtT1zdp7dc';
  const headers = { ...POST_HEADERS, 'User-Agent': 'agentA\u009b31mB' };
  const port = Number(bridge.url.port);
  for (const path of [`/mcp/${key}/%E2%80%AE?token=${key}`, `http://user:${key}@localhost/x`]) {
    await callHttp({ port, path, method: 'POST', headers, body: JSON.stringify(initialize()) });
  }
  const requests = await waitFor(() => {
    const found = bridge.logs.filter(({ msg, path }) => msg === 'request' && path !== undefined);
    return found.length >= 2 && found;
  });
  t.deepEqual(
    requests.map(({ path }) => path),
    ['/mcp/…/%E2%80%AE', 'http://localhost/x'],
  );
  const all = JSON.stringify(bridge.logs);
  t.false(all.includes('4eC39'));
  t.false(all.includes('agentA'), 'headers are not logged');
});

test('the name of a server and of its tools, in the report of a probe and as JSON', async (t) => {
  const server = ['--', process.execPath, program(t)];
  const report = await finishCommand([...BRIDGE_COMMAND, 'probe', ...server]);
  t.regex(report.stdout, /serverABCD/);
  t.notRegex(report.stdout, HIDDEN);
  t.notRegex(report.stdout, CONTROL);
  t.notRegex(report.stderr, HIDDEN);
  const json = await finishCommand([...BRIDGE_COMMAND, 'probe', '--json', ...server]);
  t.notRegex(json.stdout, HIDDEN);
  t.true(
    JSON.stringify(JSON.parse(json.stdout)).includes(JSON.stringify(nasty('server')).slice(1, -1)),
    'nothing is lost',
  );
});

test('the names of a client and of a server in a file, in the status and the log', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-nasty-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'mcp.json');
  const servers = { [nasty('listed')]: { command: process.execPath, args: [program(t)] } };
  writeFileSync(file, JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
  const bridge = await startBridge(['--config', file, '--log-level', 'trace']);
  t.teardown(() => bridge.stop());
  const headers = { ...POST_HEADERS, 'Content-Type': 'application/json' };
  const hello = { jsonrpc: '2.0', id: 0, method: 'initialize' };
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: nasty('client'), version: '1' },
  };
  const body = JSON.stringify({ ...hello, params });
  await (await fetch(bridge.url, { method: 'POST', headers, body })).text();
  const status = await (await fetch(new URL('/status.json', bridge.url))).text();
  for (const name of ['client', 'listed']) t.regex(status, new RegExp(`${name}\\\\\\\\u\\{202e\\}A`));
  t.notRegex(status, HIDDEN);
  t.notRegex(JSON.stringify(await linesOf(t, bridge, 'listed')), HIDDEN);
});

test('what a remote server says of itself in an error', async (t) => {
  const remote = createServer((_, response) => {
    response.writeHead(500, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: nasty('remote') } }));
  });
  await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve));
  t.teardown(() => remote.close());
  const { port } = remote.address() as AddressInfo;
  const { stdout, stderr } = await finishCommand([...BRIDGE_COMMAND, 'probe', `http://127.0.0.1:${port}/mcp`]);
  for (const text of [stdout, stderr]) t.notRegex(text, HIDDEN);
  t.regex(stdout, /remote/);
});
