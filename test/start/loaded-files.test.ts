/** Which files of the built program a start loads. scripts/program-parts.js says what is in each. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

const EXECUTABLE = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
const RECORDER = fileURLToPath(new URL('record-loaded.cjs', import.meta.url));
/** A command that is found, and started only when a client comes. */
const SERVER = ['--', process.execPath, '-e', 'process.stdin.resume()'];
/** Modules of Node that take longer to load than most of ours. */
const SLOW_BUILTINS = [
  ...['node:assert', 'node:child_process', 'node:crypto', 'node:dns', 'node:fs/promises', 'node:https'],
  ...['node:module', 'node:os', 'node:readline', 'node:timers/promises', 'node:tls', 'node:v8', 'node:worker_threads'],
];

interface Loaded {
  /** Files of the program, in the order in which they were loaded. */
  readonly files: readonly string[];
  readonly slowBuiltins: readonly string[];
}

/** Starts the program, and returns what it has loaded when its output matches, or when it has ended. */
async function load(t: ExecutionContext, argv: readonly string[], until?: RegExp): Promise<Loaded> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-loaded-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const record = join(folder, 'loaded');
  await writeFile(record, '');
  const env = { PATH: process.env.PATH, LOADED_FILES: record, NODE_DISABLE_COMPILE_CACHE: '1', HOME: folder };
  const child = spawn(process.execPath, ['--require', RECORDER, EXECUTABLE, ...argv], {
    env,
    stdio: [until === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  let output = '';
  const matches = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        output += String(chunk);
        if (until?.test(output) === true) resolve();
      });
    }
  });
  await (until === undefined ? closed : Promise.race([matches, closed]));
  if (until !== undefined) t.regex(output, until);
  const names = (await readFile(record, 'utf8')).split('\n');
  return {
    files: names.filter((name) => name.endsWith('.cjs')),
    slowBuiltins: SLOW_BUILTINS.filter((name) => names.includes(name)),
  };
}

const LISTENS = /\/readyz"/;

test('--version loads nothing of the program', async (t) => {
  t.deepEqual(await load(t, ['--version']), { files: [], slowBuiltins: [] });
});

test('help and completion load the command line and their texts', async (t) => {
  for (const argv of [['--help'], ['completion', 'bash']]) {
    t.deepEqual(await load(t, argv), { files: ['cli.cjs', 'help.cjs'], slowBuiltins: [] });
  }
});

test('the help on an error loads the reference of errors, which no other start does', async (t) => {
  const { files } = await load(t, ['help', 'ERR_SESSION_UNKNOWN']);
  t.deepEqual(files, ['cli.cjs', 'help.cjs', 'error-help.cjs']);
});

test('a mistake on the command line is explained without a bridge', async (t) => {
  t.deepEqual(await load(t, ['--prot', '1', ...SERVER]), { files: ['cli.cjs', 'help.cjs'], slowBuiltins: [] });
});

test('a command is served without code for clients, other eras, URLs, logins or replicas, until there is a client', async (t) => {
  // The client that may be on stdin, which is a pipe here, is told where to go.
  const files = ['cli.cjs', 'bridge.cjs', 'seldom.cjs'];
  // The heap gets its headroom before it is collected for the first time.
  t.deepEqual(await load(t, ['--port', '0', ...SERVER], LISTENS), { files, slowBuiltins: ['node:v8'] });
});

test('the code of recordings is loaded only where messages are recorded or shown', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-recorded-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const options of [['--record', join(folder, 'record.jsonl')], ['--inspect']]) {
    const { files } = await load(t, ['--port', '0', ...options, ...SERVER], LISTENS);
    t.true(files.includes('recording.cjs'), files.join(', '));
  }
});

test('a URL is served without code for logins, sockets or replicas', async (t) => {
  const { files } = await load(t, ['--port', '0', 'http://127.0.0.1:9/mcp'], LISTENS);
  t.deepEqual(files, ['cli.cjs', 'remote.cjs', 'bridge.cjs', 'clients.cjs', 'seldom.cjs', 'eras.cjs']);
});

test('connect to a command loads no HTTP client, no other era and no sockets', async (t) => {
  const { files } = await load(t, ['connect', '--log-level', 'debug', ...SERVER], /found the server/);
  t.deepEqual(files, ['cli.cjs', 'bridge.cjs', 'clients.cjs']);
});

test('files are watched by code that is loaded with --watch alone', async (t) => {
  const { files } = await load(
    t,
    ['connect', '--watch', 'package.json', '--log-level', 'debug', ...SERVER],
    /are watched/,
  );
  t.deepEqual(files, ['cli.cjs', 'bridge.cjs', 'clients.cjs', 'watch.cjs']);
});

test('a configuration file is read with the parser for its format alone', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-loaded-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const config = join(folder, 'servers.json');
  const [, command, ...args] = SERVER;
  await writeFile(config, JSON.stringify({ mcpServers: { one: { command, args } } }));
  const { files } = await load(t, ['--port', '0', '--config', config], LISTENS);
  t.deepEqual(files, ['cli.cjs', 'bridge.cjs', 'config-file.cjs', 'json-tree.cjs', 'entry-schema.cjs', 'seldom.cjs']);
});

test('the aggregate is loaded with its first client', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-loaded-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const config = join(folder, 'servers.json');
  const [, command, ...args] = SERVER;
  await writeFile(config, JSON.stringify({ mcpServers: { one: { command, args }, two: { command, args } } }));
  const file = ['--config', config];
  const { files } = await load(t, ['--port', '0', ...file, '--aggregate'], LISTENS);
  t.deepEqual(files, ['cli.cjs', 'bridge.cjs', 'config-file.cjs', 'json-tree.cjs', 'entry-schema.cjs', 'seldom.cjs']);
  // The client of `connect` is there from the start.
  t.true((await load(t, ['connect', ...file])).files.includes('aggregate.cjs'));
  t.false((await load(t, ['connect', ...file, 'one'])).files.includes('aggregate.cjs'));
});

test('a recording is shown without code for bridges, clients and servers', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-loaded-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'session.jsonl');
  await writeFile(file, '');
  const { files } = await load(t, ['view', file]);
  for (const part of ['remote', 'eras', 'status-page', 'help', 'seldom-used'])
    t.false(files.includes(`${part}.cjs`), part);
  t.true(files.includes('view.cjs'));
});
