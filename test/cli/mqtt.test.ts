import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, startBridge } from '../support/bridge.ts';
import { findProgram } from '../support/find-program.ts';
import {
  FOLDER,
  type Mosquitto,
  type MosquittoOptions,
  startMosquitto,
  WHY_NO_MOSQUITTO,
} from '../support/mosquitto.ts';
import { HABITS, startTestClient, startTestServer, type TestServerOptions } from '../support/mqtt-peers.ts';
import { ownPort } from '../support/own-port.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test : test.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

const SERVER = serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url));

async function broker(t: ExecutionContext, options?: MosquittoOptions): Promise<Mosquitto> {
  const started = await startMosquitto(options);
  t.teardown(() => started.stop());
  return started;
}

async function serveAt(t: ExecutionContext, { url }: { url: string }, options: Partial<TestServerOptions> = {}) {
  const server = await startTestServer({
    url,
    serverId: 'lamp-1',
    serverName: 'site/lamp',
    habits: HABITS.esp32,
    ...options,
  });
  t.teardown(() => server.client.endAsync(true));
  return server;
}

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const [program, ...first] = BRIDGE_COMMAND;
  const child = spawn(program, [...first, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, stdout, stderr };
}

async function connect(
  t: ExecutionContext,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Client> {
  const [command, ...first] = BRIDGE_COMMAND;
  const client = new Client({ name: 'test', version: '1' });
  const all = { ...(process.env as Record<string, string>), ...env };
  await client.connect(
    new StdioClientTransport({ command, args: [...first, 'connect', ...args], env: all, stderr: 'ignore' }),
  );
  t.teardown(() => client.close());
  return client;
}

const call = async (client: Client, value: string) =>
  ((await client.callTool({ name: 'echo', arguments: { value } })).content as { text: string }[])[0]?.text;

mqtt('connect uses a device whose name has spaces, and goes on with another instance when it leaves', async (t) => {
  const at = await broker(t);
  const name = { serverName: 'ESP32 Demo Server' };
  const first = await serveAt(t, at, name);
  const client = await connect(t, [`${at.url}/ESP32%20Demo%20Server`]);
  t.regex((await call(client, 'a')) ?? '', /"value":"a"/);
  await client.ping();
  const second = await serveAt(t, at, { ...name, serverId: 'lamp-2' });
  await first.leave();
  await waitFor(async () => (await call(client, 'b').catch(() => undefined)) !== undefined);
  t.is(second.sessions.size, 1);
  t.notDeepEqual([...first.sessions.keys()], [...second.sessions.keys()]);
});

mqtt('a session of an HTTP client survives a device that leaves and comes back', async (t) => {
  const at = await broker(t);
  const first = await serveAt(t, at);
  const bridge = await startBridge([`${at.url}/site/lamp`]);
  t.teardown(() => bridge.stop());
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(bridge.url));
  t.teardown(() => client.close());
  t.regex((await call(client, 'a')) ?? '', /"value":"a"/);
  await first.leave();
  await serveAt(t, at);
  await waitFor(async () => (await call(client, 'b').catch(() => undefined)) !== undefined);
  t.pass();
});

mqtt('with a shared session, all clients of serve use one at the device', async (t) => {
  const at = await broker(t);
  const server = await serveAt(t, at);
  const bridge = await startBridge(['--isolation', 'shared', `${at.url}/site/lamp`]);
  t.teardown(() => bridge.stop());
  for (const name of ['one', 'two']) {
    const client = new Client({ name, version: '1' });
    await client.connect(new StreamableHTTPClientTransport(bridge.url));
    t.teardown(() => client.close());
    t.regex((await call(client, name)) ?? '', new RegExp(name));
  }
  t.is(server.sessions.size, 1);
});

mqtt('probe says that the server speaks MCP over MQTT', async (t) => {
  const at = await broker(t);
  await serveAt(t, at);
  const { code, stdout } = await run(['probe', '--json', `${at.url}/site/lamp`]);
  t.is(code, 0);
  const report = JSON.parse(stdout) as {
    verdict: string;
    offers: { transport: string; era: string; works: boolean }[];
  };
  t.like(report.offers[0], { transport: 'mqtt', era: 'legacy', works: true });
});

mqtt('the account of a file is shown to the broker', async (t) => {
  const at = await broker(t, {
    settings: ['allow_anonymous false', `password_file ${FOLDER}/passwords`],
    files: { passwords: hashed({ lamp: 'lamp-secret', portage: 'portage-secret' }) },
  });
  await serveAt(t, at, { connect: { username: 'lamp', password: 'lamp-secret' } });
  const folder = await mkdtemp(join(tmpdir(), 'portage-mqtt-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'mcp.json');
  const entry = { type: 'mqtt', url: `${at.url}/site/lamp`, username: 'portage', password: `\${SECRET}` };
  await writeFile(file, JSON.stringify({ mcpServers: { lamp: entry } }));
  const client = await connect(t, ['--config', file, 'lamp'], { SECRET: 'portage-secret' });
  t.regex((await call(client, 'a')) ?? '', /"value":"a"/);
  const refused = await run(['connect', '--user', 'portage', '--password', 'env:SECRET', `${at.url}/site/lamp`], {
    SECRET: 'wrong',
  });
  t.notRegex(refused.stderr, /wrong/);
  const probed = await run(['probe', '--user', 'portage', '--password', 'env:SECRET', `${at.url}/site/lamp`], {
    SECRET: 'wrong',
  });
  t.is(probed.code, 77, probed.stdout);
});

mqtt('TLS is spoken to a broker whose authority is given, and refused otherwise', async (t) => {
  const at = await broker(t);
  await serveAt(t, at);
  const tls = (file: string) => readFileSync(new URL(`../fixtures/tls/${file}`, import.meta.url));
  const [cert, key] = [tls('server.pem'), tls('server-key.pem')];
  const { connect: connectTcp } = await import('node:net');
  const front = createTlsServer({ cert, key }, (socket) => {
    const behind = connectTcp(at.port, '127.0.0.1');
    for (const end of [socket, behind]) end.on('error', () => {});
    socket.pipe(behind).pipe(socket);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  t.teardown(() => front.close());
  const { port } = front.address() as { port: number };
  const url = `mqtts://localhost:${port}/site/lamp`;
  const ca = fileURLToPath(new URL('../fixtures/tls/ca.pem', import.meta.url));
  const client = await connect(t, ['--ca', ca, url]);
  t.regex((await call(client, 'a')) ?? '', /"value":"a"/);
  const probed = await run(['probe', url]);
  t.is(probed.code, 69);
  t.regex(probed.stdout.replaceAll(/\s+/g, ' '), /not trusted here; give its authority with --ca/);
});

// ---- exit codes

for (const [what, url, says] of [
  ['a password', 'mqtt://me:secret@127.0.0.1/a', /user name or password/],
  ['a fragment', 'mqtt://127.0.0.1/a#b', /fragment/],
  ['a wildcard', 'mqtt://127.0.0.1/a/+', /wildcard/],
  ['an escaped +', 'mqtt://127.0.0.1/a/%2B', /wildcard/],
  ['an escaped #', 'mqtt://127.0.0.1/a/%23', /wildcard/],
  ['an empty level', 'mqtt://127.0.0.1/a//b', /empty/],
  ['an empty last level', 'mqtt://127.0.0.1/a/', /empty/],
  ['no name', 'mqtt://127.0.0.1', /lacks the name/],
  ['no name after the slash', 'mqtt://127.0.0.1/', /lacks the name/],
  ['an id with a slash', 'mqtt://127.0.0.1/a?server-id=b/c', /id of a server/],
  ['another query', 'mqtt://127.0.0.1/a?topic=b', /query/],
  ['port 0', 'mqtt://127.0.0.1:0/a', /cannot be read/],
] as const) {
  test(`a URL with ${what} is refused with exit code 2, and not shown`, async (t) => {
    for (const args of [
      ['connect', url],
      ['serve', '--port', '0', '--dial', url, '--', 'node', 'server.js'],
    ]) {
      const { code, stderr } = await run(args);
      t.is(code, 2, stderr);
      if (!(args[0] === 'serve' && url.includes('server-id'))) t.regex(stderr, says);
      t.notRegex(stderr, /secret/);
    }
  });
}

test('a password on the command line is refused with the way to write it', async (t) => {
  const { code, stderr } = await run(['connect', '--password', 'sesame', 'mqtt://127.0.0.1/a']);
  t.is(code, 2);
  t.regex(stderr, /--password env:MQTT_PASSWORD/);
  t.notRegex(stderr, /sesame/);
});

test('a broker that is not there is exit code 69', async (t) => {
  const { code, stdout } = await run(['probe', `mqtt://127.0.0.1:${await ownPort()}/a`]);
  t.is(code, 69);
  t.regex(
    stdout.replaceAll(/\s+/g, ' '),
    /Cannot reach the broker at mqtt:\/\/127\.0\.0\.1:\d+: nothing listens there/,
  );
});

mqtt('a server that is not there is exit code 69', async (t) => {
  const at = await broker(t);
  const { code, stdout } = await run(['probe', '--timeout', '2s', `${at.url}/nobody`]);
  t.is(code, 69, stdout);
});

test('what is no broker is told', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  const { stdout } = await run(['probe', `mqtt://127.0.0.1:${port}/a`]);
  t.regex(stdout.replaceAll(/\s+/g, ' '), /Check that MQTT 5 is spoken at this port/);
});

// ---- the rules of the guide

/** A file of passwords, as mosquitto keeps them. */
function hashed(accounts: Readonly<Record<string, string>>): string {
  const program = findProgram('mosquitto_passwd') ?? 'mosquitto_passwd';
  const file = join(tmpdir(), `portage-passwords-${process.pid}-${Object.keys(accounts).join('-')}`);
  execFileSync('sh', ['-c', `: > "$0"; chmod 600 "$0"`, file]);
  for (const [user, password] of Object.entries(accounts))
    execFileSync(program, ['-b', file, user, password], { stdio: 'ignore' });
  const text = readFileSync(file, 'utf8');
  execFileSync('rm', [file]);
  return text;
}

/** The blocks of the guide: the settings of mosquitto, and its rules. */
function ofGuide(): readonly string[] {
  const guide = readFileSync(new URL('../../docs/guide/mqtt.md', import.meta.url), 'utf8');
  return [...guide.matchAll(/^```text\n(.*?)^```/gms)].map(([, block = '']) => block);
}

mqtt('the rules of the guide let a device serve and mcp-portage use it, and nobody else lie', async (t) => {
  const [settings = '', rules = ''] = ofGuide();
  const lines = settings
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('listener'));
  const at = await broker(t, {
    settings: lines.map((line) => line.replace('/etc/mosquitto', FOLDER)),
    files: { passwords: hashed({ lamp: 'one', portage: 'two', other: 'three' }), acl: rules },
  });
  const server = await serveAt(t, at, { connect: { username: 'lamp', password: 'one' } });
  const args = ['--user', 'portage', '--password', 'env:SECRET', `${at.url}/site/lamp`];
  const client = await connect(t, args, { SECRET: 'two' });
  t.regex((await call(client, 'a')) ?? '', /"value":"a"/);
  const [session] = server.sessions.keys();
  // Another user can neither take part nor listen.
  const other = await startTestClient({
    url: at.url,
    clientId: 'other',
    connect: { username: 'other', password: 'three' },
  });
  t.teardown(() => other.end());
  const online = '{"jsonrpc":"2.0","method":"notifications/server/online"}';
  for (const topic of [
    '$mcp-server/presence/other/site/lamp',
    '$mcp-server/presence/lamp-1/site/lamp',
    `$mcp-rpc/${session}/lamp-1/site/lamp`,
    `$mcp-client/presence/${session}`,
    '$mcp-server/lamp-1/site/lamp',
  ]) {
    await t.throwsAsync(other.publish(topic, online), undefined, topic);
  }
  await other.client.subscribeAsync('$mcp-rpc/#').catch(() => undefined);
  t.regex((await call(client, 'b')) ?? '', /"value":"b"/);
  t.is(other.received.length, 0);
  // The same rules serve a bridge in the place of the device.
  const env = { BROKER_URL: `mqtt://lamp:one@127.0.0.1:${at.port}/site/lamp` };
  const bridge = await startBridge(['--dial', 'env:BROKER_URL', '--', process.execPath, SERVER], { env });
  t.teardown(() => bridge.stop());
  await waitFor(() => bridge.logs.some(({ msg }) => /^connected to mqtt:/.test(String(msg))));
  await server.leave();
  await waitFor(async () => (await call(client, 'c').catch(() => undefined)) === 'c');
});
