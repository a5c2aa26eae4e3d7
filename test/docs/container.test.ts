import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { ownPort } from '../support/own-port.ts';

const ROOT = new URL('../../', import.meta.url);

/** Runs the health check as the container does; its exit code. */
async function check(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<unknown> {
  const script = fileURLToPath(new URL('scripts/healthcheck.js', ROOT));
  const child = spawn(process.execPath, [script, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: 'ignore',
  });
  const [code] = await once(child, 'exit');
  return code;
}

test('the health check is healthy only when /healthz answers 200', async (t) => {
  let status = 200;
  const port = await ownPort();
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/healthz' ? status : 404).end();
  }).listen(port, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');

  t.is(await check({ MCP_PORTAGE_HOST: '0.0.0.0', MCP_PORTAGE_PORT: String(port) }), 0);
  status = 503;
  t.is(await check({ MCP_PORTAGE_PORT: String(port) }), 1);
  server.close();
  t.is(await check({ MCP_PORTAGE_PORT: String(port) }), 1);
});

/** The image is Linux: the check reads the command line of process 1 from /proc. */
const onLinux = process.platform === 'linux' ? test : test.skip;

for (const written of ['--port PORT', '--port=PORT']) {
  onLinux(`the health check follows the port of the command line, written ${written}`, async (t) => {
    const port = await ownPort();
    const options = written.replace('PORT', `${port}`).split(' ');
    // Options of the server are not the bridge's.
    const server = ['--', process.execPath, 'test/fixtures/servers/echo.js', '--port', '1'];
    const bridge = await startBridge([...options, ...server], { env: { MCP_PORTAGE_PORT: '9' } });
    t.teardown(() => bridge.stop());
    t.is(bridge.url.port, `${port}`);
    const env = { MCP_PORTAGE_HOST: '0.0.0.0', MCP_PORTAGE_PORT: '9' };
    t.is(await check(env, `${bridge.pid}`), 0);
    t.is(await check(env), 1, 'the process that it looks at otherwise is no bridge');
    await bridge.stop();
    t.is(await check({ MCP_PORTAGE_PORT: `${port}` }, `${bridge.pid}`), 1);
  });
}

onLinux('the health check speaks https where the command line says so', async (t) => {
  const pem = (name: string): string => fileURLToPath(new URL(`test/fixtures/tls/${name}.pem`, ROOT));
  const tls = ['--tls-cert', pem('server'), '--tls-key', pem('server-key')];
  const port = await ownPort();
  const bridge = await startBridge([
    '--port',
    `${port}`,
    ...tls,
    '--',
    process.execPath,
    'test/fixtures/servers/echo.js',
  ]);
  t.teardown(() => bridge.stop());
  t.is(await check({}, `${bridge.pid}`), 0);
});

test('everything the Dockerfile copies from this folder exists and is let in by .dockerignore', async (t) => {
  const dockerfile = await readFile(new URL('Dockerfile', ROOT), 'utf8');
  const ignored = await readFile(new URL('.dockerignore', ROOT), 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '));
  t.true(copied.length > 5);
  for (const path of copied) {
    await t.notThrowsAsync(stat(new URL(path, ROOT)), path);
    const isLetIn = [path, path.split('/')[0]].some((name) => ignored.includes(`\n!${name}\n`));
    t.true(isLetIn, `${path} is not in .dockerignore`);
  }
});

test('the image runs without privileges, under tini, with a health check', async (t) => {
  const [, runtime = ''] = (await readFile(new URL('Dockerfile', ROOT), 'utf8')).split(/^FROM .*\n(?=# As process 1)/m);
  t.regex(runtime, /^USER node$/m);
  t.regex(runtime, /^ENTRYPOINT \["\/usr\/bin\/tini", "--", "node", "\/app\/bin\/mcp-portage\.js"\]$/m);
  t.regex(runtime, /^HEALTHCHECK /m);
  t.regex(runtime, /^EXPOSE 8000$/m);
});

test('what the bundle takes from outside src/ is there when the image is built', async (t) => {
  const folder = new URL('src/', ROOT);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const outside: string[] = [];
  for (const file of files) {
    const at = new URL(file, folder);
    for (const [, target = ''] of (await readFile(at, 'utf8')).matchAll(/ from '(\.\.\/[^']+)'/g)) {
      const path = new URL(target, at).pathname.slice(ROOT.pathname.length);
      if (!path.startsWith('src/')) outside.push(path);
    }
  }
  t.true(outside.includes('docs/reference/errors.md'));
  const dockerfile = await readFile(new URL('Dockerfile', ROOT), 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, names = '']) => names.split(' '));
  t.deepEqual(
    outside.filter((path) => !copied.some((name) => path === name || path.startsWith(`${name}/`))),
    [],
  );
});
