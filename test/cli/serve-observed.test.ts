/** What is seen of a running bridge, by the built program and a client of the official SDK. */
import { execFile } from 'node:child_process';
import { access, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { StatusDocument } from '../../src/observe/status/status-document.ts';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import { ENVIRONMENT, NODE, openClient } from '../support/config-bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { Scrape } from '../support/scrape.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';

const SERVER = ['--', NODE, ENVIRONMENT];
const IMPORT = `import(${JSON.stringify(pathToFileURL(ENVIRONMENT).href)})`;

async function start(t: ExecutionContext, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const bridge = await startBridge([...args, ...SERVER], { env });
  t.teardown(() => bridge.stop());
  return bridge;
}

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'portage-observed-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

function get({ url }: Bridge, path: string, token?: string): Promise<Response> {
  return fetch(new URL(path, url), { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });
}

function run(args: readonly string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  const [node, bin] = BRIDGE_COMMAND;
  return new Promise((resolve) => {
    execFile(node, [bin, ...args], (error, stdout) => resolve({ code: Number(error?.code ?? 0), stdout }));
  });
}

test('on this machine everybody may look at who is connected, and what runs', async (t) => {
  const bridge = await start(t, []);
  const page = await get(bridge, '/status');
  t.is(page.status, 200);
  t.regex(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  const before = (await (await get(bridge, '/status.json')).json()) as { clients: unknown[] };
  t.deepEqual(before.clients, []);
  const client = await connectStreamable(bridge.url);
  await client.client.listTools();
  const status = (await (await get(bridge, '/status.json')).json()) as {
    clients: object[];
    servers: object[];
    calls: { recent: object[] };
  };
  t.is(status.clients.length, 1);
  t.like(status.servers[0], { state: 'ready', sessions: 1, processes: 1 });
  t.true(JSON.stringify(status.calls).includes('tools/list'));
  await client.close();
  t.is((await get(bridge, '/metrics')).status, 404, 'figures are for who switches them on');
});

test('of a server, what it wrote to stderr, its tools and its crash are shown, and no credential', async (t) => {
  const bridge = await startBridge(['--', NODE, '-e', `console.error('TOKEN=abc12345 of a server'); ${IMPORT}`]);
  t.teardown(() => bridge.stop());
  const client = await connectStreamable(bridge.url);
  await client.client.listTools();
  const read = async () =>
    ((await (await get(bridge, '/status.json')).json()) as Pick<StatusDocument, 'detail'>).detail;
  await waitFor(async () => (await read())?.stderr.length === 1);
  t.is((await read())?.stderr[0]?.text, 'TOKEN=… of a server');
  t.true((await read())?.tools.includes('echo'));
  for (const pid of bridge.children()) process.kill(pid, 'SIGKILL');
  await waitFor(async () => (await read())?.restarts.length === 1);
  t.regex((await read())?.restarts[0]?.text ?? '', /was ended by SIGKILL/);
  await client.close().catch(() => undefined);
});

test('with a token only who shows it may look, and it opens nothing else', async (t) => {
  const [look, call] = ['a-long-token-to-look-at-it', 'a-long-token-to-call-with'];
  const args = ['--metrics', '--status-token', 'env:LOOK', '--auth-token', 'env:CALL'];
  const bridge = await start(t, args, { LOOK: look, CALL: call });
  t.is((await get(bridge, '/status')).status, 200, 'the page itself holds nothing');
  for (const path of ['/status.json', '/status/events', '/metrics']) {
    t.is((await get(bridge, path)).status, 401, path);
    t.is((await get(bridge, path, call)).status, 401, `${path} with the token of a caller`);
  }
  t.is((await get(bridge, '/status.json', look)).status, 200);
  t.regex(
    await (await get(bridge, '/metrics', look)).text(),
    /^# TYPE mcp_server_operation_duration_seconds histogram$/m,
  );
  t.is((await get(bridge, '/mcp', look)).status, 401);
});

test('where callers are asked who they are and there is no token to look, nobody may', async (t) => {
  const token = 'a-long-token-to-call-with';
  const bridge = await start(t, ['--metrics', '--auth-token', 'env:CALL'], { CALL: token });
  for (const path of ['/status', '/status.json', '/metrics']) {
    t.is((await get(bridge, path)).status, 404, path);
    t.is((await get(bridge, path, token)).status, 404, path);
  }
  t.true(bridge.logs.some(({ msg = '' }) => /nobody may read \/metrics/.test(msg)));
});

const DISCOVER_REQUEST = {
  jsonrpc: '2.0',
  id: 1,
  method: 'server/discover',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

test('who is refused is counted by the reason, and queues are there to be watched', async (t) => {
  const [look, call] = ['a-long-token-to-look-at-it', 'a-long-token-to-call-with'];
  const args = ['--metrics', '--status-token', 'env:LOOK', '--auth-token', 'env:CALL'];
  const bridge = await start(t, args, { LOOK: look, CALL: call });
  const port = Number(bridge.url.port);
  const refusals = [
    [{ port, path: '/mcp', headers: { Host: 'evil.example' } }, 403],
    [{ port, path: '/mcp', headers: { Origin: 'https://evil.example' } }, 403],
    [{ port, path: '/mcp' }, 401],
    [{ port, path: '/mcp', headers: { Authorization: 'Bearer wrong' } }, 401],
    [{ port, path: '/nothing' }, 404],
    // A request of 2026-07-28 that a proxy has robbed of its headers.
    [
      {
        port,
        path: '/mcp',
        method: 'POST',
        headers: {
          Authorization: `Bearer ${call}`,
          Accept: 'application/json, text/event-stream',
          'Content-Type': 'application/json',
          'MCP-Protocol-Version': '2026-07-28',
        },
        body: JSON.stringify(DISCOVER_REQUEST),
      },
      400,
    ],
  ] as const;
  for (const [request, status] of refusals) {
    const answer = await callHttp(request);
    t.is(answer.status, status);
    await answer.text();
  }
  const scraped = await waitFor(async () => {
    const found = new Scrape(await (await get(bridge, '/metrics', look)).text());
    return found.values('mcp_portage_refused_requests_total').length >= 6 && found;
  });
  const counts = scraped.values('mcp_portage_refused_requests_total').map(([{ reason }, count]) => [reason, count]);
  t.deepEqual(counts.sort(), [
    ['ERR_AUTH_REQUIRED', 1],
    ['ERR_AUTH_TOKEN', 1],
    ['ERR_HTTP_HEADER', 1],
    ['ERR_HTTP_HOST', 1],
    ['ERR_HTTP_ORIGIN', 1],
    ['ERR_HTTP_PATH', 1],
  ]);
  t.true((scraped.values('mcp_portage_connections')[0]?.[1] ?? 0) >= 1);
  t.is(scraped.values('mcp_portage_unsent_bytes').length, 1);
});

test('calls of a modern client of a legacy server are counted as translated, and its verdict and queues are shown', async (t) => {
  const bridge = await start(t, ['--metrics']);
  const client = await openClient(t, new URL('/', bridge.url), 'SDK v2, modern');
  await client.listTools();
  const scraped = new Scrape(await (await get(bridge, '/metrics')).text());
  const [[labels, count] = []] = scraped.values('mcp_portage_translated_calls_total');
  t.like(labels, { client_era: 'modern', server_era: 'legacy' });
  t.true((count ?? 0) >= 1);
  const [[verdict] = []] = scraped.values('mcp_portage_server_speaks');
  t.like(verdict, { transport: 'stdio', server_era: 'legacy' });
  const queues = scraped.values('mcp_portage_queue_items').map(([{ queue }]) => queue);
  t.deepEqual([...queues].sort(), ['parked_calls', 'pooled_sessions', 'sessions_wanted']);
  const bytes = scraped.values('mcp_portage_queue_bytes').map(([{ queue }]) => queue);
  t.deepEqual([...bytes].sort(), ['large_requests', 'parked_calls', 'request_bodies']);
});

test('somebody who looks with a browser is told where the status is, if it is anywhere', async (t) => {
  const browse = async ({ url }: Bridge) =>
    (await fetch(new URL('/', url), { headers: { accept: 'text/html' } })).text();
  const bridge = await start(t, []);
  t.true((await browse(bridge)).includes(`${bridge.url.origin}/status`));
  t.notRegex(await browse(await start(t, ['--no-status'])), /\/status/);
});

test('usage is counted, told by the bridge, and kept for the report', async (t) => {
  const state = await folder(t);
  const bridge = await start(t, ['--usage', '--state-dir', state]);
  const client = await connectStreamable(bridge.url);
  await client.client.listTools();
  await client.close();
  const asked = await run(['report', '--url', bridge.url.origin, '--json']);
  t.is(asked.code, 75);
  t.like(JSON.parse(asked.stdout), { conclusion: 'too-early' });
  t.is((JSON.parse(asked.stdout) as { rows: object[] }).rows.length, 1);
  await bridge.stop();
  const kept = await run(['report', '--state-dir', state, '--json']);
  t.is(kept.code, 75);
  t.like((JSON.parse(kept.stdout) as { rows: object[] }).rows[0], { sessions: 1, errors: 0 });
});

test('each call is a line of the audit file', async (t) => {
  const file = join(await folder(t), 'audit.jsonl');
  const bridge = await start(t, ['--audit-file', file]);
  const client = await connectStreamable(bridge.url);
  await client.client.listTools();
  const lines = () =>
    readFile(file, 'utf8').then((text) =>
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    );
  const found = await waitFor(async () =>
    (await lines().catch(() => [])).find(({ method }) => method === 'tools/list'),
  );
  t.like(found, { outcome: 'answered', caller: 'anonymous' });
  await client.close();
  await bridge.stop();
});

test('SIGHUP lets the file of audited calls go that was moved away', async (t) => {
  const file = join(await folder(t), 'audit.jsonl');
  const bridge = await start(t, ['--audit-file', file]);
  const client = await connectStreamable(bridge.url);
  const count = async (path: string) =>
    ((await readFile(path, 'utf8').catch(() => '')).match(/"tools\/list"/g) ?? []).length;
  await client.client.listTools();
  await waitFor(async () => (await count(file)) === 1);
  await rename(file, `${file}.1`);
  bridge.kill('SIGHUP');
  await waitFor(
    () =>
      access(file).then(
        () => true,
        () => false,
      ),
    { message: 'the new file' },
  );
  await client.client.listTools();
  await waitFor(async () => (await count(file)) === 1);
  t.is(await count(`${file}.1`), 1, 'nothing more is written to the old one');
  await client.close();
});

test('what a mapped header says of a caller is shown nowhere', async (t) => {
  const path = await folder(t);
  const [file, state] = [join(path, 'audit.jsonl'), join(path, 'state')];
  const kept = ['--audit-file', file, '--usage', '--state-dir', state, '--metrics'];
  const bridge = await start(t, ['--map-header', 'X-Key=API_KEY', '--log-level', 'trace', ...kept]);
  const secret = 'hunter2-of-a-caller';
  const client = await connectStreamable(bridge.url, { headers: { 'X-Key': secret } });
  const { content } = await client.client.callTool({ name: 'environment', arguments: { variable: 'API_KEY' } });
  t.regex(JSON.stringify(content), new RegExp(secret), 'the process is told');
  const shown = await Promise.all(
    ['/status.json', '/metrics', '/status/usage.json'].map(async (at) => (await get(bridge, at)).text()),
  );
  await client.close();
  await bridge.stop();
  const files = await readdir(path, { recursive: true, withFileTypes: true });
  const written = files
    .filter((entry) => entry.isFile())
    .map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8'));
  t.true(written.length >= 2);
  const all = [...shown, ...(await Promise.all(written)), JSON.stringify(bridge.logs)].join('\n');
  t.regex(all, /"caller":"anonymous"/);
  t.false(all.includes(secret));
});

test('calls are refused while a file that is required cannot be written, from the first one on', async (t) => {
  const bridge = await start(t, ['--audit-file', '/dev/full', '--audit-required']);
  await waitFor(() => bridge.logs.some(({ level }) => level === 'error'), { message: 'the complaint' });
  const { client, close } = await connectStreamable(bridge.url);
  await t.throwsAsync(client.listTools(), { message: /audit/ });
  await close();
});

test('the log says who comes and goes', async (t) => {
  const bridge = await start(t, []);
  const client = await connectStreamable(bridge.url);
  await client.close();
  const said = (pattern: RegExp) => bridge.logs.some(({ msg = '' }) => pattern.test(msg));
  await waitFor(() => said(/ connected to .* by Streamable HTTP 2025-11-25, passed on over stdio/), {
    message: 'it came',
  });
  t.pass();
});
