import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { ownPort } from '../support/own-port.ts';

const ROOT = new URL('../../', import.meta.url);

/** Runs the health check as the container does; its exit code. */
async function check(env: Readonly<Record<string, string>>): Promise<unknown> {
  const script = fileURLToPath(new URL('scripts/healthcheck.js', ROOT));
  const child = spawn(process.execPath, [script], { env: { PATH: process.env.PATH ?? '', ...env }, stdio: 'ignore' });
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

test('everything the Dockerfile copies from this folder exists and is let in by .dockerignore', async (t) => {
  const dockerfile = await readFile(new URL('Dockerfile', ROOT), 'utf8');
  const ignored = await readFile(new URL('.dockerignore', ROOT), 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '));
  t.true(copied.length > 5);
  for (const path of copied) {
    await t.notThrowsAsync(stat(new URL(path, ROOT)), path);
    t.true(ignored.includes(`\n!${path.split('/')[0]}\n`), `${path} is not in .dockerignore`);
  }
});

test('the image runs without privileges, under tini, with a health check', async (t) => {
  const [, runtime = ''] = (await readFile(new URL('Dockerfile', ROOT), 'utf8')).split(/^FROM .*\n(?=# As process 1)/m);
  t.regex(runtime, /^USER node$/m);
  t.regex(runtime, /^ENTRYPOINT \["\/usr\/bin\/tini", "--", "node", "\/app\/bin\/mcp-portage\.js"\]$/m);
  t.regex(runtime, /^HEALTHCHECK /m);
  t.regex(runtime, /^EXPOSE 8000$/m);
});
