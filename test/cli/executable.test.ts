/** The built program as users start it; `npm test` builds it first. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { CodeFile } from '../../src/start/code-file.ts';

const EXECUTABLE = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
/** A command that is found, started only when a client comes. */
const SERVER = ['--', process.execPath, '-e', 'process.stdin.resume()'];

type Program = ChildProcessByStdio<null, Readable, Readable>;

interface Surroundings {
  readonly executable?: string;
  readonly env?: NodeJS.ProcessEnv;
}

function start(t: ExecutionContext, argv: readonly string[], around: Surroundings = {}): Program {
  // Settings of whoever runs the tests are no part of them.
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_')),
  );
  const env = { ...inherited, ...around.env };
  const executable = around.executable ?? EXECUTABLE;
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
    if (/\/readyz"/.test(log)) return [...new Set(urls)];
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
  t.regex(stdout, /^mcp-portage joins [\s\S]*?\n\nUsage\n {2}mcp-portage -- <command> \[args\.\.\.\] /);
  t.is(stderr, '');
});

test('a Node that is too old is named, with the way out, and nothing is tried', async (t) => {
  const disguise = join(await createDirectory(t), 'disguise.cjs');
  const pretend = (name: string, value: string) => `Object.defineProperty(process, '${name}', { value: ${value} });\n`;
  await writeFile(disguise, pretend('version', "'v18.20.8'") + pretend('versions', "{ node: '18.20.8' }"));
  const { code, stdout, stderr } = await finish(start(t, SERVER, { env: { NODE_OPTIONS: `--require=${disguise}` } }));
  t.is(code, 70);
  t.is(stdout, '');
  t.regex(stderr, /^mcp-portage needs Node 20\.19 or newer; this is v18\.20\.8, .* first in PATH.*\n$/);
});

test('a program that imports the library with such a Node gets an error of one line, with the reason', async (t) => {
  const folder = await createDirectory(t);
  const disguise = join(folder, 'disguise.cjs');
  const pretend = (name: string, value: string) => `Object.defineProperty(process, '${name}', { value: ${value} });\n`;
  await writeFile(disguise, pretend('version', "'v18.20.8'") + pretend('versions', "{ node: '18.20.8' }"));
  const library = (kind: string): string => JSON.stringify(new URL(`../../dist/library.${kind}`, import.meta.url));
  const required = `require(require('node:url').fileURLToPath(${library('cjs')}))`;
  for (const load of [`await import(${library('mjs')})`, `await (async () => ${required})()`]) {
    const program = join(folder, 'program.cjs');
    await writeFile(program, `(async () => { ${load} })().catch((error) => console.error(error));\n`);
    const child = spawn(process.execPath, ['--require', disguise, program], { stdio: ['ignore', 'pipe', 'pipe'] });
    const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')]);
    t.regex(stderr, /^\[?Error: mcp-portage needs Node 20\.19 or newer; this is v18\.20\.8, /);
    t.false(/^ {4}at /m.test(stderr), stderr);
  }
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

test('with --no-sse it serves Streamable HTTP alone, and its log names no other endpoint', async (t) => {
  const child = start(t, ['--port', '0', '--no-sse', '--path', '/sse', ...SERVER]);
  const closed = once(child, 'close');
  const urls = await whenListening(child);
  t.deepEqual(
    urls.map((url) => new URL(url).pathname),
    ['/sse', '/healthz', '/readyz'],
  );
  const [url = ''] = urls;
  t.is((await fetch(url, { headers: { Accept: 'text/event-stream' } })).status, 405);
  const message = await fetch(new URL('/messages', url), { method: 'POST' });
  t.is(message.status, 404);
  t.true((await message.text()).includes(`Streamable HTTP is at ${url}`));
  child.kill('SIGTERM');
  t.deepEqual(await closed, [0, null]);
});

test('goes on serving when nobody reads its stderr anymore', async (t) => {
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
  const directory = await createDirectory(t);
  await cp(dirname(EXECUTABLE), join(directory, 'bin'), { recursive: true });
  const executable = join(directory, 'bin', 'mcp-portage.js');
  const { code, stderr } = await finish(start(t, ['--version'], { executable }));
  t.is(code, 70);
  t.regex(stderr, /^mcp-portage is not built: .*`npm ci`/);
});

/** A run that ends by itself, with a cache folder of its own. Resolves with what it has kept. */
async function runWithCache(t: ExecutionContext, directory: string) {
  const env = { XDG_CACHE_HOME: directory, LOCALAPPDATA: directory, NODE_DISABLE_COMPILE_CACHE: '' };
  // Its stdin has ended, so nothing is ever started.
  const { code, stdout, stderr } = await finish(start(t, ['connect', ...SERVER], { env }));
  t.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' });
  const [name = ''] = await readdir(join(directory, 'mcp-portage'));
  const path = join(directory, 'mcp-portage', name);
  return { path, kept: new CodeFile(path).read() };
}

test('keeps compiled code for the next start, which uses it and adds to it', async (t) => {
  const directory = await createDirectory(t);
  t.is((await runWithCache(t, directory)).kept?.generation, 1);
  // V8 takes nothing but what it has compiled itself from this source, with these flags; then counting starts anew.
  for (const generation of [2, 3, 4, 4]) t.is((await runWithCache(t, directory)).kept?.generation, generation);
});

test('compiled code that V8 does not take is compiled again', async (t) => {
  const directory = await createDirectory(t);
  const { path } = await runWithCache(t, directory);
  new CodeFile(path).write({ code: Buffer.alloc(1000), generation: 3 });
  t.is((await runWithCache(t, directory)).kept?.generation, 1);
});

test('a damaged file of compiled code ends no start, and is replaced', async (t) => {
  const directory = await createDirectory(t);
  const { path } = await runWithCache(t, directory);
  const good = await readFile(path);
  const half = Math.floor(good.length / 2);
  const damages = [
    // As a loss of power leaves them, or a full disk; V8 would run these and end the process.
    Buffer.concat([good.subarray(0, half), Buffer.alloc(4096), good.subarray(half + 4096)]),
    good.map((byte, at) => (at > 1000 && at % 1000 === 0 ? byte ^ 0xff : byte)),
    good.subarray(0, half),
    Buffer.alloc(0),
  ];
  for (const damaged of damages) {
    await writeFile(path, damaged);
    t.is((await runWithCache(t, directory)).kept?.generation, 1);
  }
});

async function createDirectory(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}
