/** Tokens that are bound to a key, with the built program; `npm test` builds it first. */

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { WebSocketServer } from 'ws';
import { createContractServer } from '../fixtures/contract-server/server.js';
import { temporaryFolder } from '../http/login/logged-in.ts';
import { type BoundWorld, startBoundWorld } from '../support/bound-world.ts';
import { startBridge } from '../support/bridge.ts';
import { BROWSER } from '../support/browser-command.ts';
import { forwardTo } from '../support/login-world.ts';
import { connectClient, connectStreamable } from '../support/sdk-client.ts';
import { startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { transportOver } from '../support/websocket-server.ts';
import { EXECUTABLE } from './stdio-program.ts';

/** An official server behind one that wants bound tokens, and nonces in the proofs. */
async function protect(t: ExecutionContext, starting?: ReturnType<typeof startStreamable>): Promise<BoundWorld> {
  const bound = await startBoundWorld(t);
  Object.assign(bound.nonces, { issuer: 'of-the-issuer', server: 'of-the-server' });
  if (starting === undefined) return bound;
  const server = await starting;
  t.teardown(() => server.close());
  bound.world.serve = forwardTo(server.url);
  return bound;
}

function commandFor(target: string, stateDirectory: string, ...options: readonly string[]) {
  const args = [EXECUTABLE, 'connect', '--state-dir', stateDirectory, ...options, target];
  return { command: process.execPath, args, env: { PATH: process.env.PATH ?? '', BROWSER }, stderr: 'pipe' } as const;
}

const methodsOf = ({ server }: BoundWorld) => new Set(server.proofs.map(({ method }) => method));

test('two processes of a user work at once with one bound login, from the first call to the end of their sessions', async (t) => {
  const bound = await protect(t, startStreamable());
  const { world, keys, faults } = bound;
  const folder = temporaryFolder(t);
  const clients = await Promise.all(
    [0, 1].map(() => connectClient(new StdioClientTransport(commandFor(world.server, folder)))),
  );
  for (const { close } of clients) t.teardown(close);
  const callAll = () =>
    Promise.all(clients.map(({ client }) => client.callTool({ name: 'echo', arguments: { value: 'a' } })));
  t.is((await callAll()).length, 2);
  world.tokens.clear();
  t.is((await callAll()).length, 2);
  await waitFor(() => methodsOf(bound).has('GET'), { message: 'a stream of the server' });
  for (const { close } of clients) await close();
  await waitFor(() => methodsOf(bound).has('DELETE'), { message: 'the end of a session' });
  t.is(keys.size, 1);
  t.is(world.count('/authorize'), 1);
  t.is(world.reuses, 0);
  t.deepEqual(faults, []);
});

test('a modern client uses a server that wants bound tokens', async (t) => {
  const { world, faults } = await protect(t, startStreamable());
  const options = { versionNegotiation: { mode: { pin: '2026-07-28' } } } as const;
  const client = new ModernClient({ name: 'modern', version: '1.0.0' }, options);
  t.teardown(() => client.close());
  await client.connect(new ModernStdio(commandFor(world.server, temporaryFolder(t))));
  t.true((await client.listTools()).tools.length > 0);
  t.deepEqual(faults, []);
});

test('HTTP+SSE works with bound tokens, at the endpoint that the stream names as well', async (t) => {
  const { world, faults } = await protect(t, startHttpSse());
  const command = commandFor(world.server, temporaryFolder(t), '--transport', 'sse');
  const { client, close } = await connectClient(new StdioClientTransport(command));
  t.teardown(close);
  t.true((await client.listTools()).tools.length > 0);
  t.is(world.count('/authorize'), 1);
  t.deepEqual(faults, []);
});

test('the handshake of a WebSocket proves possession of the key', async (t) => {
  const bound = await protect(t);
  const { world, faults } = bound;
  const sockets = new WebSocketServer({ noServer: true });
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate();
  });
  world.upgrade = (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (opened) => {
      void createContractServer().connect(transportOver(opened) as never);
    });
  const target = world.server.replace(/^http/, 'ws');
  const { client, close } = await connectClient(new StdioClientTransport(commandFor(target, temporaryFolder(t))));
  t.teardown(close);
  t.true((await client.listTools()).tools.length > 0);
  t.deepEqual([...methodsOf(bound)], ['GET']);
  t.is(world.count('/authorize'), 1);
  t.deepEqual(faults, []);
});

test('serve logs in with a bound token on demand', async (t) => {
  const { world, faults } = await protect(t, startStreamable());
  const env = { BROWSER, MCP_PORTAGE_STATE_DIR: temporaryFolder(t) };
  const bridge = await startBridge(['--login', 'on-demand', world.server], { env });
  t.teardown(() => bridge.stop());
  const { client, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  t.true((await client.listTools()).tools.length > 0);
  t.deepEqual(faults, []);
});

test('probe and login make bound logins, and no output shows the private key', async (t) => {
  const { world, faults } = await protect(t, startStreamable());
  const folder = temporaryFolder(t);
  const env = { PATH: process.env.PATH ?? '', BROWSER, MCP_PORTAGE_STATE_DIR: folder };
  const outputs: string[] = [];
  for (const words of [
    ['probe', '--login', 'on-demand', '--log-level', 'trace', world.server],
    ['login', '--log-level', 'trace', world.server],
    ['login', '--status'],
  ]) {
    const { stdout, stderr } = spawn(process.execPath, [EXECUTABLE, ...words], { env });
    outputs.push(...(await Promise.all([text(stdout), text(stderr)])));
  }
  t.regex(outputs[2] ?? '', /^Logged in to /);
  t.deepEqual(faults, []);
  t.is(world.count('/authorize'), 1);
  const [file = ''] = readdirSync(join(folder, 'logins'));
  const { tokens } = JSON.parse(readFileSync(join(folder, 'logins', file), 'utf8'));
  const output = outputs.join('');
  t.false(output.includes(tokens.key.d));
  t.false(output.includes(tokens.key.x));
});
