/** The built program as users start it; `npm test` builds it first. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

const EXECUTABLE = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
/** A command that is found, started only when a client comes. */
const SERVER = ['--', process.execPath, '-e', 'process.stdin.resume()'];

type Program = ChildProcessByStdio<null, Readable, Readable>;

function start(t: ExecutionContext, argv: readonly string[], executable = EXECUTABLE): Program {
  // Settings of whoever runs the tests are no part of them.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_')));
  const child = spawn(process.execPath, [executable, ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

async function finish(child: Program) {
  const closed = once(child, 'close');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code, signal] = await closed;
  return { code, signal, stdout, stderr };
}

/** Waits for the URLs in the log. */
async function whenListening(child: Program): Promise<readonly string[]> {
  let log = '';
  for await (const chunk of child.stderr) {
    log += String(chunk);
    const urls = log.match(/http:\/\/[^\s"]+(?=")/g) ?? [];
    if (/\/sse"/.test(log)) return [...new Set(urls)];
  }
  throw new Error(`ended before it listened: ${log}`);
}

test('--version prints the version of the package and nothing else', async (t) => {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));
  t.deepEqual(await finish(start(t, ['--version'])), { code: 0, signal: null, stdout: `${version}\n`, stderr: '' });
});

test('--help prints the help on stdout', async (t) => {
  const { code, stdout, stderr } = await finish(start(t, ['--help']));
  t.is(code, 0);
  t.regex(stdout, /^mcp-portage joins .*\n\nUsage\n {2}mcp-portage \[serve\] \[options\] -- <command> \[args\.\.\.\] /);
  t.is(stderr, '');
});

test('an unknown option is an error on stderr with exit code 2', async (t) => {
  t.deepEqual(await finish(start(t, ['--prot', '1', ...SERVER])), {
    code: 2,
    signal: null,
    stdout: '',
    stderr: 'mcp-portage: ERR_CONFIG_OPTION: Unknown option --prot; did you mean --port?\n',
  });
});

test('a reader that leaves early does not crash it', async (t) => {
  const child = start(t, ['completion', 'zsh']);
  const closed = once(child, 'close');
  child.stdout.destroy();
  t.is(await text(child.stderr), '');
  t.deepEqual(await closed, [0, null]);
});

test('serves until SIGTERM, logs its URLs on stderr as JSON and keeps stdout clean', async (t) => {
  const child = start(t, ['--port', '0', ...SERVER]);
  const stdout = text(child.stdout);
  const closed = once(child, 'close');
  const urls = await whenListening(child);
  t.true(
    urls.some((url) => /^http:\/\/127\.0\.0\.1:\d+\/mcp$/.test(url)),
    urls.join(' '),
  );
  t.true(
    urls.some((url) => /^http:\/\/127\.0\.0\.1:\d+\/sse$/.test(url)),
    urls.join(' '),
  );
  child.kill('SIGTERM');
  t.deepEqual(await closed, [0, null]);
  t.is(await stdout, '');
});

test('goes on serving when nobody reads its stderr any more', async (t) => {
  const child = start(t, ['--port', '0', '--log-level', 'debug', ...SERVER]);
  const closed = once(child, 'close');
  const [url] = await whenListening(child);
  child.stderr.destroy();
  const health = new URL('/healthz', url);
  for (let call = 0; call < 3; call++) t.is((await fetch(health)).status, 200);
  child.kill('SIGTERM');
  t.deepEqual(await closed, [0, null]);
});

test('a port that is taken ends it with exit code 69 and says so', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  const address = other.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { code, stderr } = await finish(start(t, ['--port', String(port), ...SERVER]));
  t.is(code, 69);
  t.like(JSON.parse(stderr.trim().split('\n').at(-1) ?? ''), { level: 'fatal', code: 'ERR_CONFIG_LISTEN' });
});

test('without dist/ it says how to build', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, 'bin'));
  await writeFile(join(directory, 'package.json'), '{"type":"module"}');
  await copyFile(EXECUTABLE, join(directory, 'bin', 'mcp-portage.js'));
  const { code, stderr } = await finish(start(t, ['--version'], join(directory, 'bin', 'mcp-portage.js')));
  t.is(code, 70);
  t.regex(stderr, /^mcp-portage is not built: .*`npm ci`/);
});
