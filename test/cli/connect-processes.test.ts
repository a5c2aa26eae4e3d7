/** Several processes of one user with one server, by the built program; `npm test` builds it first. */

import { spawn } from 'node:child_process';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { temporaryFolder } from '../http/login/logged-in.ts';
import { BROWSER } from '../support/browser-command.ts';
import { forwardTo, type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { connectClient } from '../support/sdk-client.ts';
import { startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXECUTABLE } from './stdio-program.ts';

/** An official server behind one that wants tokens. */
async function protect(t: ExecutionContext): Promise<LoginWorld> {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const world = await startLoginWorld(t);
  world.serve = forwardTo(server.url);
  return world;
}

function commandFor(world: LoginWorld, stateDirectory: string, ...options: readonly string[]) {
  const args = [EXECUTABLE, 'connect', '--state-dir', stateDirectory, ...options, world.server];
  return { command: process.execPath, args, env: { PATH: process.env.PATH ?? '', BROWSER }, stderr: 'pipe' } as const;
}

/** Starts processes of one user at the same moment; resolves when each has a client. */
function connectAll(t: ExecutionContext, command: ReturnType<typeof commandFor>, count: number) {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const connected = await connectClient(new StdioClientTransport(command));
      t.teardown(connected.close);
      return connected.client;
    }),
  );
}

const refreshesOf = (world: LoginWorld): number =>
  world.asked.filter(({ parameters }) => parameters.get('grant_type') === 'refresh_token').length;

for (const count of [2, 5, 20]) {
  test.serial(
    `${count} processes of one user log in once, and refresh once each time, at a server that takes a refresh token once`,
    async (t) => {
      const world = await protect(t);
      const command = commandFor(world, temporaryFolder(t));
      const first = await connectAll(t, command, Math.min(count, 5));
      t.is(world.count('/authorize'), 1);
      t.is(world.count('/register'), 1);
      await Promise.all(first.map((client) => client.close()));
      world.tokens.clear();
      const running = await connectAll(t, command, count);
      t.is(refreshesOf(world), 1);
      world.tokens.clear();
      for (const { tools } of await Promise.all(running.map((client) => client.listTools()))) t.true(tools.length > 0);
      t.is(refreshesOf(world), 2);
      t.is(world.count('/authorize'), 1);
      t.is(world.reuses, 0);
    },
  );
}

test.serial('a process that is killed in the middle of a login leaves it to another one that waits', async (t) => {
  const world = await protect(t);
  const folder = temporaryFolder(t);
  const asking = commandFor(world, folder, '--no-oauth-browser');
  const killed = spawn(asking.command, asking.args, { env: asking.env, stdio: ['pipe', 'ignore', 'pipe'] });
  t.teardown(() => killed.kill('SIGKILL'));
  let log = '';
  killed.stderr.on('data', (chunk) => {
    log += chunk;
  });
  killed.stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } } })}\n`,
  );
  await waitFor(() => log.includes('if no browser opens'), { message: 'a login to begin' });
  const transport = new StdioClientTransport(commandFor(world, folder));
  let said = '';
  transport.stderr?.on('data', (chunk) => {
    said += chunk;
  });
  const connecting = connectClient(transport);
  await waitFor(() => said.includes(`another process (${killed.pid}) is logging in`), { message: 'it to wait' });
  t.is(world.count('/authorize'), 0);
  killed.kill('SIGKILL');
  const { client, close } = await connecting;
  t.teardown(close);
  t.true((await client.listTools()).tools.length > 0);
  t.is(world.count('/authorize'), 1);
});
