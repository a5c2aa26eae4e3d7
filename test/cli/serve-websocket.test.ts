/** WebSocket by the built program: clients of the SDK, servers of others, and hubs that are called. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { BRIDGE_COMMAND, type Bridge, REPOSITORY, startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer, transportOver, type WebSocketServerOptions } from '../support/websocket-server.ts';

// Node has one of its own only from version 22.
globalThis.WebSocket ??= WebSocket as unknown as typeof globalThis.WebSocket;

const SERVER = join(REPOSITORY, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const EVERYTHING = ['--', process.execPath, SERVER];

async function start(t: ExecutionContext, args: readonly string[], env: Record<string, string> = {}): Promise<Bridge> {
  const bridge = await startBridge(args, { env });
  t.teardown(() => bridge.stop());
  return bridge;
}

async function startServer(t: ExecutionContext, options: WebSocketServerOptions = {}) {
  const server = await startWebSocketServer(options);
  t.teardown(() => server.stop());
  return server;
}

const webSocketUrl = ({ url }: Bridge, path = '/ws'): URL => new URL(path, `ws://${url.host}`);

interface Status {
  readonly servers: readonly { readonly wsUrl: string; readonly hubs: readonly object[] }[];
  readonly clients: readonly { readonly speaks: { readonly transport: string } }[];
}

async function statusOf({ url }: Bridge): Promise<Status> {
  return (await (await fetch(new URL('/status.json', url))).json()) as Status;
}

async function connect(t: ExecutionContext, url: URL): Promise<Client> {
  const client = new Client({ name: 'sdk-client', version: '1.0.0' });
  await client.connect(new WebSocketClientTransport(url) as never);
  t.teardown(() => client.close());
  return client;
}

async function echo(client: Client, message: string, key = 'message'): Promise<string> {
  return JSON.stringify((await client.callTool({ name: 'echo', arguments: { [key]: message } })).content);
}

test('serves a client of the SDK over WebSocket beside others, and says so', async (t) => {
  const bridge = await start(t, ['--metrics', ...EVERYTHING]);
  t.true(JSON.stringify(bridge.logs).includes(`ws://${bridge.url.host}/ws`));
  const client = await connect(t, webSocketUrl(bridge));
  t.true((await echo(client, 'over a socket')).includes('over a socket'));
  await waitFor(() => bridge.logs.some(({ msg = '' }) => /sdk-client 1\.0\.0 connected to .* by WebSocket/.test(msg)));
  const status = await statusOf(bridge);
  t.is(status.servers[0]?.wsUrl, webSocketUrl(bridge).href);
  t.is(status.clients[0]?.speaks.transport, 'websocket');
  const metrics = await (await fetch(new URL('/metrics', bridge.url))).text();
  t.regex(metrics, /^mcp_portage_client_calls_total\{[^}]*transport="websocket"[^}]*\} \d+$/m);
  t.is((await bridge.stop()).code, 0);
});

test('serves each server of a file below its name', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'servers.json');
  const remote = await startServer(t);
  const [, command, ...args] = EVERYTHING;
  const mcpServers = { local: { command, args }, remote: { type: 'ws', url: remote.url.href } };
  await writeFile(file, JSON.stringify({ mcpServers }), { mode: 0o600 });
  const bridge = await start(t, ['--config', file]);
  t.true((await echo(await connect(t, webSocketUrl(bridge, '/local/ws')), 'a')).includes('a'));
  t.true((await echo(await connect(t, webSocketUrl(bridge, '/remote/ws')), 'b', 'value')).includes('b'));
});

test('serves none with --no-ws, and another path with --ws-path', async (t) => {
  const [without, elsewhere] = [
    await start(t, ['--no-ws', ...EVERYTHING]),
    await start(t, ['--ws-path', '/socket', ...EVERYTHING]),
  ];
  const socket = new WebSocket(webSocketUrl(without), 'mcp');
  socket.on('error', () => undefined);
  const [, response] = await once(socket, 'unexpected-response');
  t.is(response.statusCode, 404);
  response.destroy();
  socket.terminate();
  t.true((await echo(await connect(t, webSocketUrl(elsewhere, '/socket')), 'c')).includes('c'));
});

test('closes with 1001 when it is told to end', async (t) => {
  const bridge = await start(t, EVERYTHING);
  const socket = new WebSocket(webSocketUrl(bridge), 'mcp');
  await once(socket, 'open');
  const closed = once(socket, 'close');
  bridge.kill('SIGTERM');
  t.is((await closed)[0], 1001);
  t.is((await bridge.exited).code, 0);
});

test('connect goes on with the session when the connection to a WebSocket server is lost', async (t) => {
  const server = await startServer(t);
  const [command, ...args] = [...BRIDGE_COMMAND, 'connect', server.url.href];
  const client = new Client({ name: 'sdk-client', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command: command as string, args, stderr: 'ignore' }));
  t.teardown(() => client.close());
  t.true((await echo(client, 'before', 'value')).includes('before'));
  server.cut();
  await waitFor(() => server.open.size === 1 && server.asked.length === 2, { message: 'a new connection' });
  t.true((await echo(client, 'after', 'value')).includes('after'));
});

test('serves HTTP clients what a WebSocket server has', async (t) => {
  const server = await startServer(t);
  const bridge = await start(t, ['--header', `X-Key: \${KEY}`, server.url.href], { KEY: 'hunter2' });
  t.true((await echo(await connect(t, webSocketUrl(bridge)), 'relayed', 'value')).includes('relayed'));
  t.is(server.asked[0]?.headers['x-key'], 'hunter2');
  t.notRegex(JSON.stringify(bridge.logs), /hunter/);
});

test('--dial serves whoever is at a hub, calls again when the connection ends, and keeps its secrets', async (t) => {
  const clients: Client[] = [];
  let served = 0;
  const hub = await startServer(t, {
    connected(socket) {
      const client = new Client({ name: 'hub', version: '1.0.0' });
      clients.push(client);
      void client.connect(transportOver(socket) as never).then(() => {
        served += 1;
      });
    },
  });
  const options = ['--dial', 'env:HUB_URL', '--dial-token', 'env:HUB_TOKEN', '--dial-header', `X-Device: \${DEVICE}`];
  const env = { HUB_URL: `${hub.url.href}?key=hunter2`, HUB_TOKEN: 'hunter3hunter3hunter3', DEVICE: 'lamp' };
  const bridge = await start(t, [...options, ...EVERYTHING], env);
  await waitFor(() => served === 1, { message: 'the hub to be called' });
  t.true((await echo(clients[0] as Client, 'from the hub')).includes('from the hub'));
  const sent = hub.asked[0];
  t.is(sent?.url, '/mcp?key=hunter2');
  t.like(sent?.headers, {
    authorization: `Bearer ${env.HUB_TOKEN}`,
    'x-device': 'lamp',
    'sec-websocket-protocol': 'mcp',
  });
  t.like(await (await fetch(new URL('/readyz', bridge.url))).json(), { status: 'ready', hubs: 'connected' });
  const status = await statusOf(bridge);
  t.deepEqual(status.servers[0]?.hubs, [{ url: hub.url.href, state: 'connected', problem: null }]);
  for (const socket of hub.open) socket.close(1012, 'the hub restarts');
  await waitFor(() => served === 2, { message: 'the hub to be called again' });
  t.true((await echo(clients[1] as Client, 'again')).includes('again'));
  t.is((await bridge.stop()).code, 0);
  t.is(hub.ends.at(-1)?.code, 1001);
  t.notRegex(JSON.stringify(bridge.logs), /hunter/);
});

test('--dial goes on calling a hub that refuses, ever more slowly, and says why once', async (t) => {
  const hub = await startServer(t, { refuse: () => ({ status: 401, body: 'who are you' }) });
  const bridge = await start(t, ['--dial', hub.url.href, ...EVERYTHING]);
  await waitFor(() => hub.asked.length >= 2, { message: 'a second call' });
  t.like(await (await fetch(new URL('/readyz', bridge.url))).json(), { status: 'ready', hubs: 'calling' });
  const said = bridge.logs.filter(({ msg = '' }) => /The hub at .* refused the call \(401\).*--dial-token/.test(msg));
  t.is(said.length, 1);
});
