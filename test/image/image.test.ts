/** The image as people run it: built from the Dockerfile, with a published server in it and official clients before it. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext, type Implementation } from 'ava';
import { createConfigFolder } from '../support/config-folder.ts';
import {
  buildImage,
  type Engine,
  EVERYTHING,
  engine,
  findEngine,
  runWords,
  SERVERS,
  startContainer,
  usersOf,
} from '../support/container.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';

const found = findEngine();
const HARDENED = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
const ANYBODY = ['--env', 'MCP_PORTAGE_ALLOW_ANONYMOUS=true'];
const SERVE = ['--', 'node', EVERYTHING];

let image = '';

/** Tests of one image, one after the other: they share the machine with the engine. */
function withEngine(title: string, run: (t: ExecutionContext, used: Engine) => Promise<void>): void {
  if (found === undefined) {
    test.skip(`${title} (skipped: neither docker nor podman works here)`, () => undefined);
    return;
  }
  const used = found;
  const implementation: Implementation<[]> = (t) => run(t, used);
  test.serial(title, implementation);
}

if (found !== undefined) {
  const used = found;
  test.before('the image is built from the Dockerfile', async (t) => {
    t.timeout(20 * 60_000);
    image = await buildImage(used, 'slim');
  });
}

function textsOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

async function serve(t: ExecutionContext, used: Engine, options: readonly string[] = []) {
  const container = await startContainer(t, used, { options: [...ANYBODY, ...options], image, args: SERVE });
  await waitFor(async () => (await fetch(new URL('/healthz', container.url)).catch(() => undefined))?.ok === true);
  return container;
}

async function connectTo(t: ExecutionContext, url: URL) {
  const connected = await connectStreamable(new URL('/mcp', url));
  t.teardown(() => connected.close());
  return connected;
}

withEngine('serves a published server to an official client, and is healthy', async (t, used) => {
  const { id, url } = await serve(t, used);
  const { client } = await connectTo(t, url);
  const { content } = await client.callTool({ name: 'echo', arguments: { message: 'from a container' } });
  t.deepEqual(content, [{ type: 'text', text: 'Echo: from a container' }]);
  await t.notThrowsAsync(engine(used, 'exec', id, 'node', '/app/scripts/healthcheck.js'));
  if (used.program === 'podman') await t.notThrowsAsync(engine(used, 'healthcheck', 'run', id));
});

withEngine('runs every process as the user node', async (t, used) => {
  const { id, url } = await serve(t, used);
  await connectTo(t, url);
  t.deepEqual(usersOf(used, id), ['1000']);
});

withEngine('runs with a read-only root and without any capability', async (t, used) => {
  const { url } = await serve(t, used, HARDENED);
  const { client } = await connectTo(t, url);
  t.true((await client.listTools()).tools.length > 5);
});

withEngine('SIGTERM ends it within its grace time, open calls answered, exit code 0', async (t, used) => {
  const { id, url } = await serve(t, used);
  const { client } = await connectTo(t, url);
  let hasBegun = false;
  const call = client.callTool(
    { name: 'trigger-long-running-operation', arguments: { duration: 2, steps: 4 } },
    undefined,
    {
      onprogress: () => {
        hasBegun = true;
      },
    },
  );
  await waitFor(() => hasBegun);
  const [exit] = await Promise.all([engine(used, 'wait', id), engine(used, 'stop', '--time', '20', id)]);
  t.is(exit, '0');
  t.regex(JSON.stringify((await call).content), /completed/i);
});

withEngine('connect in a container is a stdio server for an official client', async (t, used) => {
  const words = runWords('--interactive', '--network', 'none', ...HARDENED, ...SERVERS, image, 'connect', ...SERVE);
  const client = new Client({ name: 'container-host', version: '1' });
  await client.connect(
    new StdioClientTransport({ command: used.program, args: [...words], stderr: 'ignore', env: textsOf(used.env) }),
  );
  t.teardown(() => client.close());
  const { content } = await client.callTool({ name: 'echo', arguments: { message: 'over a pipe' } });
  t.deepEqual(content, [{ type: 'text', text: 'Echo: over a pipe' }]);
});

withEngine('a container of connect ends when its input does', async (t, used) => {
  const words = runWords('--interactive', '--network', 'none', ...SERVERS, image, 'connect', ...SERVE);
  const child = spawn(used.program, words, { stdio: ['pipe', 'ignore', 'ignore'], env: used.env });
  const ended = once(child, 'exit');
  child.stdin.end();
  const [code] = await ended;
  t.is(code, 0);
});

withEngine('without authentication it refuses to listen to everybody, and says what to do', async (t, used) => {
  const words = runWords(...SERVERS, image, ...SERVE);
  const failed = await t.throwsAsync<Error & { code: number; stderr: string }>(
    promisify(execFile)(used.program, [...words], { env: used.env }),
  );
  t.is(failed?.code, 2);
  t.regex(failed?.stderr ?? '', /--allow-anonymous/);
});

withEngine('holds what runs, and neither sources, nor tests, nor build tools', async (t, used) => {
  const words = runWords(
    '--entrypoint',
    'sh',
    image,
    '-c',
    'ls /app; test -e /app/node_modules/typescript && echo typescript',
  );
  const { stdout } = await promisify(execFile)(used.program, [...words], { env: used.env }).catch((error) => error);
  t.deepEqual(stdout.trim().split('\n'), ['LICENSE', 'bin', 'dist', 'node_modules', 'package.json', 'scripts']);
});

withEngine('the variant for Python has uvx on its PATH, and runs it as the user node', async (t, used) => {
  t.timeout(20 * 60_000);
  const python = await buildImage(used, 'uv', { UV_IMAGE: await buildStandInForUv(t, used) });
  const { stdout } = await promisify(execFile)(
    used.program,
    [...runWords('--entrypoint', 'sh', python, '-c', 'id -u; command -v uv; command -v uvx; python3 -c "print(3)"')],
    { env: used.env },
  );
  t.deepEqual(stdout.trim().split('\n'), ['1000', '/usr/local/bin/uv', '/usr/local/bin/uvx', '3']);
  const args = ['--', 'uvx', 'mcp-server-fetch'];
  const { id, url } = await startContainer(t, used, { options: [...ANYBODY, ...HARDENED], image: python, args });
  await waitFor(async () => (await fetch(new URL('/healthz', url)).catch(() => undefined))?.ok === true);
  const { client } = await connectTo(t, url);
  const called = await client.callTool({ name: 'greet', arguments: {} });
  t.regex(JSON.stringify(called.content), /Python 3[.\d]+ runs mcp-server-fetch/);
  t.deepEqual(usersOf(used, id), ['1000']);
});

/**
 * Where the image of uv comes from may be out of reach: this one has programs at the same places, and its `uvx` is itself a
 * server written in Python. So it is not shown here that uv downloads and installs a server.
 */
async function buildStandInForUv(t: ExecutionContext, used: Engine): Promise<string> {
  const name = 'localhost/mcp-portage-uv-stand-in';
  const { path, write } = await createConfigFolder(t);
  await write('uv', '#!/bin/sh\n');
  await write('uvx', await readFile(new URL('../fixtures/python/uvx', import.meta.url), 'utf8'));
  await write('Dockerfile', 'FROM scratch\nCOPY --chmod=755 uv uvx /\n');
  await engine(used, 'build', '--quiet', '--tag', name, path);
  return name;
}
