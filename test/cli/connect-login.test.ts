/** Logging in with the built program; `npm test` builds it first. */

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { WebSocketServer } from 'ws';
import { createContractServer } from '../fixtures/contract-server/server.js';
import { temporaryFolder } from '../http/login/logged-in.ts';
import { startBridge } from '../support/bridge.ts';
import { BROWSER } from '../support/browser-command.ts';
import { forwardTo, type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { connectClient, connectStreamable } from '../support/sdk-client.ts';
import { startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { transportOver } from '../support/websocket-server.ts';
import { EXECUTABLE } from './stdio-program.ts';

/** An official server behind one that wants tokens. */
async function protect(t: ExecutionContext, starting: ReturnType<typeof startStreamable>): Promise<LoginWorld> {
  const server = await starting;
  t.teardown(() => server.close());
  const world = await startLoginWorld(t);
  world.serve = forwardTo(server.url);
  return world;
}

function commandFor(world: LoginWorld, stateDirectory: string, ...options: readonly string[]) {
  const args = [EXECUTABLE, 'connect', '--state-dir', stateDirectory, ...options, world.server];
  return { command: process.execPath, args, env: { PATH: process.env.PATH ?? '', BROWSER }, stderr: 'pipe' } as const;
}

test('a client over stdio uses a server that wants a login, and the next one needs none', async (t) => {
  const world = await protect(t, startStreamable());
  const folder = temporaryFolder(t);
  for (const _ of ['first', 'next']) {
    const { client, close } = await connectClient(new StdioClientTransport(commandFor(world, folder)));
    t.teardown(close);
    const results = await Promise.all(
      ['a', 'b', 'c'].map((value) => client.callTool({ name: 'echo', arguments: { value } })),
    );
    t.is(results.length, 3);
    await close();
  }
  t.is(world.count('/authorize'), 1);
  const logins = join(folder, 'logins');
  const [file = '', ...others] = readdirSync(logins);
  t.deepEqual(others, []);
  t.true(file.startsWith('127.0.0.1'));
  if (process.platform !== 'win32') {
    t.is(statSync(logins).mode & 0o777, 0o700);
    t.is(statSync(join(logins, file)).mode & 0o777, 0o600);
  }
});

test('so does a modern client, with a legacy server', async (t) => {
  const world = await protect(t, startStreamable());
  const client = new ModernClient(
    { name: 'modern', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  t.teardown(() => client.close());
  await client.connect(new ModernStdio(commandFor(world, temporaryFolder(t))));
  const { tools } = await client.listTools();
  t.true(tools.some(({ name }) => name === 'echo'));
  t.is(world.count('/authorize'), 1);
});

test('a token that ends in the middle of a session is refreshed there, its event stream included', async (t) => {
  const world = await protect(t, startStreamable());
  const { client, close } = await connectClient(new StdioClientTransport(commandFor(world, temporaryFolder(t))));
  t.teardown(close);
  await client.listTools();
  world.tokens.clear();
  t.true((await client.listTools()).tools.length > 0);
  t.is(world.count('/authorize'), 1);
  t.is(world.latest('/token').parameters.get('grant_type'), 'refresh_token');
});

test('a server of HTTP+SSE asks for a login as well', async (t) => {
  const world = await protect(t, startHttpSse());
  const command = commandFor(world, temporaryFolder(t), '--transport', 'sse');
  const { client, close } = await connectClient(new StdioClientTransport(command));
  t.teardown(close);
  t.true((await client.listTools()).tools.length > 0);
  t.is(world.count('/authorize'), 1);
});

test('a WebSocket server that refuses the handshake asks for a login as well', async (t) => {
  const world = await startLoginWorld(t);
  const sockets = new WebSocketServer({ noServer: true });
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate();
  });
  world.upgrade = (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (opened) => {
      void createContractServer().connect(transportOver(opened) as never);
    });
  const folder = temporaryFolder(t);
  for (const _ of ['first', 'next']) {
    const { args, ...command } = commandFor(world, folder);
    const target = world.server.replace(/^http/, 'ws');
    const transport = new StdioClientTransport({ ...command, args: [...args.slice(0, -1), target] });
    const { client, close } = await connectClient(transport);
    t.teardown(close);
    t.true((await client.listTools()).tools.length > 0);
    await close();
  }
  t.is(world.count('/authorize'), 1);
  t.is(world.shown[0], undefined, 'it shows nothing before it is asked for a token');
});

test('a client is told what went wrong with a login, and never gets a 401', async (t) => {
  const world = await protect(t, startStreamable());
  world.comeBack = ({ state }) => ({ state, error: 'access_denied' });
  const error = await t.throwsAsync(connectClient(new StdioClientTransport(commandFor(world, temporaryFolder(t)))));
  t.regex(error?.message ?? '', /The login at .* was refused \(access_denied\)/);
});

test('without a login, and with a token of the user, a refusal is reported', async (t) => {
  const world = await protect(t, startStreamable());
  for (const [expected, ...options] of [
    ['requires authorization', '--login', 'never'],
    ['does not accept the token it was given', '--header', 'Authorization: Bearer of-the-user'],
  ] as const) {
    const command = commandFor(world, temporaryFolder(t), ...options);
    const error = await t.throwsAsync(connectClient(new StdioClientTransport(command)));
    t.true(error?.message.includes(`${expected} (401)`), error?.message);
  }
  t.is(world.asked.length, 0);
});

test('serve logs in when it is told to, once for all callers, and nobody is told of a 401', async (t) => {
  const world = await protect(t, startStreamable());
  const settings = ['--state-dir', temporaryFolder(t), world.server];
  const silent = await startBridge(settings, { env: { BROWSER } });
  t.teardown(() => silent.stop());
  await t.throwsAsync(connectStreamable(silent.url), { message: /requires authorization/ });
  t.is(world.asked.length, 0);
  const bridge = await startBridge(['--login', 'on-demand', ...settings], { env: { BROWSER } });
  t.teardown(() => bridge.stop());
  const clients = await Promise.all([connectStreamable(bridge.url), connectStreamable(bridge.url)]);
  for (const { client, close } of clients) {
    t.true((await client.listTools()).tools.length > 0);
    await close();
  }
  t.is(world.count('/authorize'), 1);
});

test('a probe logs in when it is told to, which serves whoever comes next', async (t) => {
  const world = await protect(t, startStreamable());
  const folder = temporaryFolder(t);
  const probe = async (...options: readonly string[]) => {
    const args = [EXECUTABLE, 'probe', '--json', '--state-dir', folder, ...options, world.server];
    const env = { PATH: process.env.PATH ?? '', BROWSER };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    return JSON.parse(await text(child.stdout));
  };
  t.is((await probe()).verdict, 'unauthorized');
  // The contract server declares more than it has.
  t.is((await probe('--login', 'on-demand')).verdict, 'partly-usable');
  const { client, close } = await connectClient(new StdioClientTransport(commandFor(world, folder)));
  t.teardown(close);
  await client.listTools();
  t.is(world.count('/authorize'), 1);
});

test('neither the command line of the browser nor the log has the address of the page to log in at', async (t) => {
  const world = await protect(t, startStreamable());
  const folder = temporaryFolder(t);
  const opened = join(folder, 'opened');
  const { args, env } = commandFor(world, folder, '--log-level', 'debug');
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args, stderr: 'pipe' },
    env: { ...env, OPENED: opened },
  });
  let log = '';
  transport.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  const { client, close } = await connectClient(transport);
  t.teardown(close);
  await client.listTools();
  await close();
  const [start = '', ...others] = readFileSync(opened, 'utf8').trim().split('\n');
  t.deepEqual(others, []);
  t.regex(start, /^http:\/\/127\.0\.0\.1:\d+\/callback\/start\/[\w-]{43}$/);
  t.true(log.includes(start));
  const asked = world.latest('/authorize').parameters;
  for (const secret of ['/authorize', asked.get('state') ?? '', asked.get('code_challenge') ?? '']) {
    t.false(log.includes(secret), secret);
  }
});
