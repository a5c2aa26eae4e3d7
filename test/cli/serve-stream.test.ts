import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import { startInetd } from '../support/inetd.ts';
import { call, initialize } from '../support/legacy-clients.ts';
import { LineClient } from '../support/line-client.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';

const SERVER = serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url));
const COMMAND = ['--', process.execPath, SERVER];

const isThere = (program: string): boolean => {
  try {
    execFileSync('which', [program], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** Where lines are taken, as the log says. */
function streamsOf({ logs }: Bridge): readonly URL[] {
  return logs.flatMap(({ endpoint }) => {
    const { label, url } = (endpoint ?? {}) as { label?: string; url?: string };
    return url !== undefined && label?.endsWith('yte stream') ? [new URL(url)] : [];
  });
}

async function serve(t: ExecutionContext, ...args: readonly string[]): Promise<{ bridge: Bridge; port: number }> {
  const bridge = await startBridge(args);
  t.teardown(() => bridge.stop());
  const [url] = await waitFor(() => streamsOf(bridge).length > 0 && streamsOf(bridge));
  return { bridge, port: Number(url?.port) };
}

async function connectSdk(t: ExecutionContext, command: string, args: string[]): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  t.teardown(() => client.close());
  return client;
}

const echo = async (client: Client, value: string): Promise<unknown> =>
  (await client.callTool({ name: 'echo', arguments: { value } })).content;
const said = (text: string) => [{ type: 'text', text }];

test('serves lines beside HTTP, each connection with a server of its own', async (t) => {
  const { bridge, port } = await serve(t, '--stream', 'tcp://127.0.0.1:0', ...COMMAND);
  const clients = await Promise.all([LineClient.connect({ port }), LineClient.connect({ port })]);
  for (const client of clients) {
    client.write(initialize());
    t.like(await client.nextMessage(), { id: 0, result: { serverInfo: { name: 'contract-server' } } });
  }
  t.is(bridge.children().length, 2);
  for (const client of clients) client.end();
  await Promise.all(clients.map(({ ended }) => ended));
  await waitFor(() => bridge.children().length === 0);
});

test('what curl posts to the port is not served, and the log says why', async (t) => {
  const { bridge, port } = await serve(t, '--stream', 'tcp://127.0.0.1:0', ...COMMAND);
  await t.throwsAsync(fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify(initialize()) }));
  await waitFor(() => bridge.logs.some(({ msg, code }) => code === 'ERR_WIRE_PARSE' && msg?.includes('web page')));
  t.is(bridge.children().length, 0);
});

(isThere('socat') ? test : test.skip)('socat joins an SDK client with a Unix socket (needs socat)', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 's');
  const bridge = await startBridge(['--stream', `unix://${path}`, ...COMMAND]);
  t.is(statSync(path).mode & 0o777, 0o600);
  const client = await connectSdk(t, 'socat', ['-', `UNIX-CONNECT:${path}`]);
  t.deepEqual(await echo(client, 'by socat'), said('by socat'));
  t.is((await bridge.stop()).code, 0);
  t.throws(() => statSync(path), { code: 'ENOENT' });
});

(isThere('nc') ? test : test.skip)('nc gets its answers after it has ended its input (needs nc)', async (t) => {
  const { port } = await serve(t, '--stream', 'tcp://127.0.0.1:0', ...COMMAND);
  const nc = spawn('nc', ['-N', '127.0.0.1', String(port)], { stdio: ['pipe', 'pipe', 'ignore'] });
  let output = '';
  nc.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const lines = [initialize(), { jsonrpc: '2.0', method: 'notifications/initialized' }, call(1, 'count')];
  nc.stdin.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await once(nc, 'close');
  const ids = output
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id?: number }).id);
  t.true(ids.includes(0) && ids.includes(1), output);
});

(isThere('socat') ? test : test.skip)(
  'a server behind socat is served, with a process for each client (needs socat)',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 's');
    const socat = spawn('socat', [`UNIX-LISTEN:${path},fork`, `EXEC:${process.execPath} ${SERVER}`], {
      stdio: 'ignore',
    });
    t.teardown(() => socat.kill());
    await waitFor(() => statSync(path, { throwIfNoEntry: false })?.isSocket());
    const [command = '', ...args] = BRIDGE_COMMAND;
    const client = await connectSdk(t, command, [...args, 'connect', `unix://${path}`]);
    t.deepEqual(await echo(client, 'through socat'), said('through socat'));
  },
);

test('connect makes a lost connection anew, and the session goes on', async (t) => {
  const inetd = await startInetd([process.execPath, SERVER]);
  t.teardown(() => inetd.stop());
  const [command = '', ...args] = BRIDGE_COMMAND;
  const client = await connectSdk(t, command, [...args, 'connect', `tcp://127.0.0.1:${inetd.port}`]);
  t.deepEqual(await echo(client, 'before'), said('before'));
  await inetd.cut();
  await waitFor(() =>
    echo(client, 'after').then(
      (content) => JSON.stringify(content) === JSON.stringify(said('after')),
      () => false,
    ),
  );
  t.is(inetd.accepted, 2);
});

test('with --isolation shared one connection serves everybody', async (t) => {
  const inetd = await startInetd([process.execPath, SERVER]);
  t.teardown(() => inetd.stop());
  const { port } = await serve(
    t,
    '--stream',
    'tcp://127.0.0.1:0',
    '--isolation',
    'shared',
    `tcp://127.0.0.1:${inetd.port}`,
  );
  const clients = await Promise.all([LineClient.connect({ port }), LineClient.connect({ port })]);
  for (const client of clients) {
    client.write(initialize());
    t.like(await client.nextMessage(), { id: 0, result: { serverInfo: { name: 'contract-server' } } });
    client.write(call(1, 'log'));
  }
  t.is(inetd.accepted, 1);
  for (const client of clients) client.socket.destroy();
});
