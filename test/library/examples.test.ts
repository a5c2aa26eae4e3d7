/** The examples as they are in the repository, each with official clients of every kind. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { KIND_NAMES, openClient } from '../support/config-bridge.ts';
import { installedPrograms } from '../support/installed-programs.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';

const FOLDER = new URL('../../examples/library/', import.meta.url);
/** It serves a client on its own stdin and stdout. */
const ON_STDIO = 'on-stdio.js';
const PROBE = 'probe.js';

/** Resolves with the first address that it prints. Killed when the test ends. */
async function start(t: ExecutionContext, name: string): Promise<{ readonly child: ChildProcess; readonly url: URL }> {
  const file = fileURLToPath(new URL(name, FOLDER));
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...(await installedPrograms(t)), PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  child.stderr.resume();
  for await (const line of createInterface({ input: child.stdout })) return { child, url: new URL(line) };
  throw new Error(`${name} ended without an address`);
}

test('every example is tried', async (t) => {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.js'));
  t.deepEqual(names.sort(), [...Object.keys(HTTP), ON_STDIO, PROBE].sort());
});

/** What else the server of the example has, where it is somebody's own: the path and the answer. */
const HTTP: Readonly<Record<string, readonly [path: string, status: number, text: string | undefined] | undefined>> = {
  'express.js': ['/', 200, '{"app":"mine"}'],
  'fastify.js': ['/', 200, '{"app":"mine"}'],
  'fetch.js': ['/orders', 404, undefined],
  'node-http.js': ['/', 200, '{"app":"mine"}'],
  'several-servers.js': undefined,
};

for (const [name, own] of Object.entries(HTTP)) {
  // One after the other: each starts a dozen processes.
  test.serial(
    `examples/library/${name} serves clients of every kind, and ends with all of its processes`,
    async (t) => {
      const { child, url } = await start(t, name);
      await Promise.all(
        KIND_NAMES.map(async (kind) => {
          const client = await openClient(t, new URL('.', url), kind);
          const result = await client.callTool({ name: 'echo', arguments: { message: kind } });
          t.deepEqual(contentOf(result), [{ type: 'text', text: `Echo: ${kind}` }]);
          await client.close();
        }),
      );
      if (own !== undefined) {
        const [path, status, text] = own;
        const response = await fetch(new URL(path, url));
        const answered = await response.text();
        t.is(response.status, status);
        if (text !== undefined) t.is(answered, text);
      }
      const children = descendantsOf(child.pid ?? 0);
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      t.deepEqual(await ended, [0, null]);
      await assertGone(children);
    },
  );
}

function contentOf(result: unknown): unknown {
  return result !== null && typeof result === 'object' && 'content' in result ? result.content : undefined;
}

test(`examples/library/${ON_STDIO} serves the client that starts it`, async (t) => {
  const client = new Client({ name: 'sdk-client', version: '1' });
  t.teardown(() => client.close());
  const args = [fileURLToPath(new URL(ON_STDIO, FOLDER))];
  const env = { ...getDefaultEnvironment(), ...(await installedPrograms(t)) };
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }));
  const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  t.deepEqual(content, [{ type: 'text', text: 'Echo: hello' }]);
});

test(`examples/library/${PROBE} tells what a server speaks`, async (t) => {
  const env = { ...process.env, ...(await installedPrograms(t)) };
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(new URL(PROBE, FOLDER))], { env });
  t.regex(stdout, /^works: legacy era over stdio 2025-11-25$/m);
  t.regex(stdout, /\nusable\n$/);
});

test('the programs of docs/guide/library.md are the examples', async (t) => {
  const guide = await readFile(new URL('../../docs/guide/library.md', import.meta.url), 'utf8');
  const shown = [...guide.matchAll(/```js\n(.*?)```/gs)].map(([, text = '']) => text);
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.js'));
  const examples = await Promise.all(names.map((name) => readFile(new URL(name, FOLDER), 'utf8')));
  t.true(shown.length >= 4, String(shown.length));
  for (const text of shown) t.true(examples.includes(text), text);
});
