/** The packed package in an empty folder, used as its users do. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { blocksOf, commandsOf, documentAt } from '../docs/documents.ts';
import { startBridge } from '../support/bridge.ts';
import { EVERYTHING } from '../support/config-bridge.ts';
import { installedPrograms } from '../support/installed-programs.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { npm, packInto, ROOT } from './packed.ts';

const run = promisify(execFile);
const TYPESCRIPT = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/** Of all tests of this file; an installation takes seconds. */
const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-installed-'));
const PROGRAM = join(folder, 'node_modules/mcp-portage/bin/mcp-portage.js');

test.before(async () => {
  const archive = await packInto(folder);
  await writeFile(join(folder, 'package.json'), '{"name":"consumer","private":true}');
  await npm(folder, 'install', archive, '--offline');
});
test.after.always(() => rm(folder, { recursive: true, force: true }));

/** Asks a real server, and shows what a mistake looks like. */
const USE = `
  const { verdict } = await probe({ command: process.execPath, args: [process.argv[2]] });
  const mistake = await serve({}).catch((error) => error);
  console.log(JSON.stringify({ verdict, isBridgeError: mistake instanceof BridgeError, code: mistake.code }));
`;
const EXPECTED = { verdict: 'usable', isBridgeError: true, code: 'ERR_CONFIG_OPTION' };

test.serial('an installation is one package, without dependencies', async (t) => {
  const installed = await readdir(join(folder, 'node_modules'));
  t.deepEqual(
    installed.filter((name) => !name.startsWith('.')),
    ['mcp-portage'],
  );
  const { stdout } = await run(process.execPath, [PROGRAM, '--help']);
  t.regex(stdout, /mcp-portage/);
});

test('the two commands of the README’s quick start serve a real server from the package, and report on it', async (t) => {
  const commands = blocksOf({ path: 'README.md', text: documentAt('README.md') }).flatMap(commandsOf);
  const [serving = [], probing = []] = commands.map((command) => command.replace('npx -y mcp-portage ', '').split(' '));
  const bridge = await startBridge(serving, { env: await installedPrograms(t), bin: PROGRAM });
  t.teardown(() => bridge.stop());
  const { client, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  const called = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  t.regex(JSON.stringify(called.content), /hello/);
  const { stdout } = await run(process.execPath, [
    PROGRAM,
    ...probing.slice(0, -1),
    bridge.url.href,
    '--timeout',
    '60s',
  ]);
  t.regex(stdout, /^usable/m);
});

test('an ES module imports the library', async (t) => {
  await writeFile(join(folder, 'use.mjs'), `import { probe, serve, BridgeError } from 'mcp-portage';\n${USE}`);
  const { stdout, stderr } = await run(process.execPath, ['use.mjs', EVERYTHING], { cwd: folder });
  t.deepEqual(JSON.parse(stdout), EXPECTED);
  t.is(stderr, '');
});

test('a CommonJS module requires the library, and gets the same as an ES module', async (t) => {
  const head = `const library = require('mcp-portage');\nconst { probe, serve, BridgeError } = library;`;
  const same = `const imported = await import('mcp-portage'); for (const name of Object.keys(library)) if (library[name] !== imported[name]) throw new Error(name);`;
  await writeFile(join(folder, 'use.cjs'), `${head}\n(async () => {${same}${USE}})();`);
  const { stdout, stderr } = await run(process.execPath, ['use.cjs', EVERYTHING], { cwd: folder });
  t.deepEqual(JSON.parse(stdout), EXPECTED);
  t.is(stderr, '');
});

const PTY = join(ROOT, 'node_modules', '@lydell');
// Its package has no build for some systems; and pseudo-terminals that pass bytes unchanged do not exist on Windows.
const ptyTest =
  process.platform !== 'win32' && existsSync(join(PTY, `node-pty-${process.platform}-${process.arch}`))
    ? test.serial
    : test.serial.skip;

ptyTest('--pty says how to get what it needs, and finds it beside mcp-portage', async (t) => {
  const words = [
    join(folder, 'node_modules/mcp-portage/bin/mcp-portage.js'),
    'probe',
    '--pty',
    '--',
    process.execPath,
    EVERYTHING,
  ];
  const refused: { readonly code?: unknown; readonly stderr?: string } = await run(process.execPath, words).catch(
    (error: object) => error,
  );
  t.is(refused.code, 2);
  t.regex(refused.stderr ?? '', /npx -y -p mcp-portage -p @lydell\/node-pty@1 mcp-portage --pty/);
  await symlink(PTY, join(folder, 'node_modules', '@lydell'), 'junction');
  const { stdout } = await run(process.execPath, words);
  t.regex(stdout, /usable/i);
});

const CONSUMER = `
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { BridgeError, type BridgeObserver, type BridgeOptions, connect, createBridge, type ErrorCode, probe, type ProbeReport, serve } from 'mcp-portage';

const observer: BridgeObserver = { callEnded: (call, { outcome }) => console.log(call.tool, outcome.kind) };
const options: BridgeOptions = { server: { command: 'x', args: ['y'], env: { A: process.env['A'] } }, port: 0, observer };
// What the types of Express 5 ask of middleware.
type Called = IncomingMessage & { originalUrl: string; body: any };
type Middleware = (request: Called, response: ServerResponse, next: (error?: any) => void) => void | Promise<void>;
export async function main(): Promise<void> {
  const bridge = await createBridge({ ...options, prefix: '/tools' });
  createServer((request, response) => void (bridge.handle(request, response) || response.end()));
  const middleware: Middleware = bridge.handle;
  const fetch: (request: Request) => Response | Promise<Response> = bridge.fetch;
  void [middleware, fetch];
  const running = await serve({ servers: { a: { url: new URL('http://localhost'), portage: { required: true } } } });
  const url: string = running.url;
  const report: ProbeReport = await probe({ url }, { timeout: '3s', signal: AbortSignal.timeout(5) });
  const { ended } = await connect({ server: { command: 'x' }, client: { input: process.stdin, output: process.stdout } });
  const code: ErrorCode | undefined = (await ended)?.code;
  if (code === 'ERR_CONFIG_OPTION') throw new BridgeError(code, report.verdict);
  // @ts-expect-error either one server or several
  await serve({ port: 1 });
  // @ts-expect-error no such option
  await serve({ server: { command: 'x' }, prot: 1 });
  // @ts-expect-error a server is a command or a URL
  await probe({ command: 'x', url: 'y' });
  // @ts-expect-error an option of listening has no meaning here
  await connect({ server: { command: 'x' }, client: 'stdio', port: 1 });
}
`;

test.serial('the types need those of Node and no others', async (t) => {
  await mkdir(join(folder, 'node_modules/@types'), { recursive: true });
  for (const types of ['@types/node', 'undici-types']) {
    await symlink(join(ROOT, 'node_modules', types), join(folder, 'node_modules', types), 'junction');
  }
  const text = await readFile(join(folder, 'node_modules/mcp-portage/dist/library.d.mts'), 'utf8');
  const imports = [...text.matchAll(/(?:from|import\(|types=)\s*['"]([^'"]+)['"]/g)].map(([, from]) => from);
  t.deepEqual([...new Set(imports)].sort(), ['node', 'node:http', 'node:stream']);
});

for (const [name, module, moduleResolution] of [
  ['use.mts', 'node16', 'node16'],
  ['use.cts', 'node16', 'node16'],
  ['use.ts', 'esnext', 'bundler'],
] as const) {
  test(`TypeScript checks ${name} against the types, with moduleResolution ${moduleResolution}`, async (t) => {
    await writeFile(join(folder, name), CONSUMER);
    const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--types', 'node'];
    const words = [...options, '--module', module, '--moduleResolution', moduleResolution, name];
    const { stdout } = await run(process.execPath, [TYPESCRIPT, ...words], { cwd: folder }).catch(
      (failed: { readonly stdout: string }) => failed,
    );
    t.is(stdout, '');
  });
}
