/** The single executable, built and run as people do: what the quick start promises, without a Node beside it. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { connectSse, connectStreamable } from '../support/sdk-client.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const NAME = process.platform === 'win32' ? 'mcp-portage.exe' : 'mcp-portage';
/** A copy where no modules of this folder are found. */
const ALONE = mkdtempSync(join(tmpdir(), 'portage-binary-'));
const EXECUTABLE = join(ALONE, NAME);
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const SERVER = ['--', process.execPath, EVERYTHING];
const run = promisify(execFile);

/** What the build printed. */
let built = '';

test.before('it is built', async (t) => {
  t.timeout(5 * 60_000);
  built = (await run(process.execPath, ['scripts/build-binary.js'], { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 })).stdout;
  await copyFile(join(ROOT, 'build', NAME), EXECUTABLE);
});

test.after.always('the copy is removed', () => rm(ALONE, { recursive: true, force: true }));

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'portage-binary-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Nothing of this machine's Node is found by it but what the command of the server names. */
const BARE = { PATH: '/nowhere', HOME: '/nowhere' };

/** Resolves with the address of its Streamable HTTP endpoint, or another that its log names. */
async function serve(t: ExecutionContext, args: readonly string[], label = 'Streamable HTTP'): Promise<URL> {
  const child = spawn(EXECUTABLE, ['--port', '0', '--log-format', 'json', ...args], {
    env: BARE,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  });
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    const { endpoint } = JSON.parse(line) as { readonly endpoint?: { readonly label: string; readonly url: string } };
    if (endpoint?.label === label) {
      child.stderr.resume();
      return new URL(endpoint.url);
    }
  }
  throw new Error(`it ended without serving: ${said.join('\n')}`);
}

test('the build says how large it is, and how fast it starts', (t) => {
  t.regex(built, /mcp-portage(\.exe)?: \d+ MiB, starts in \d+ ms \(/);
});

test('says its version', async (t) => {
  const { stdout, stderr } = await run(EXECUTABLE, ['--version'], { env: BARE });
  t.regex(stdout, /^\d+\.\d+\.\d+\n$/);
  t.is(stderr, '');
});

test('serves a published server to clients of both HTTP transports', async (t) => {
  const url = await serve(t, SERVER);
  const [streamable, sse] = [await connectStreamable(url), await connectSse(new URL('/sse', url))];
  for (const { client, close } of [streamable, sse]) {
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'one file' } });
    t.deepEqual(content, [{ type: 'text', text: 'Echo: one file' }]);
    await close();
  }
});

test('serves the servers of a configuration file, and the page about them', async (t) => {
  const config = join(await folder(t), 'mcp.json');
  await writeFile(
    config,
    JSON.stringify({ mcpServers: { everything: { command: process.execPath, args: [EVERYTHING] } } }),
    { mode: 0o600 },
  );
  const url = await serve(t, ['--config', config, '--metrics'], 'everything');
  const { client, close } = await connectStreamable(url);
  t.true((await client.listTools()).tools.length > 5);
  await close();
  t.is((await fetch(new URL('/status', url))).status, 200);
  t.is((await fetch(new URL('/metrics', url))).status, 200);
});

test('connect is a stdio server for an official client', async (t) => {
  const url = await serve(t, SERVER);
  const client = new Client({ name: 'host', version: '1' });
  await client.connect(
    new StdioClientTransport({ command: EXECUTABLE, args: ['connect', url.href], env: BARE, stderr: 'ignore' }),
  );
  t.teardown(() => client.close());
  const { content } = await client.callTool({ name: 'echo', arguments: { message: 'over a pipe' } });
  t.deepEqual(content, [{ type: 'text', text: 'Echo: over a pipe' }]);
});

test('probe reports on a server', async (t) => {
  const url = await serve(t, SERVER);
  const { stdout } = await run(EXECUTABLE, ['probe', '--json', url.href], { env: BARE });
  t.true(JSON.parse(stdout) !== null);
  t.regex(stdout, /everything/);
});

test('--pty is not in it, and it says so', async (t) => {
  const failed = await t.throwsAsync<Error & { readonly code: number; readonly stderr: string }>(
    run(EXECUTABLE, ['--pty', '--port', '0', ...SERVER], { env: BARE }),
  );
  t.not(failed?.code, 0);
  t.regex(failed?.stderr ?? '', /node-pty/);
});
