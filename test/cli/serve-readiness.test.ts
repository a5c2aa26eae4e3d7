/** What /readyz says of a server that cannot be started, and of one that can again. Needs a current build. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { fixture } from '../process/child-spec.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';

interface Health {
  readonly status: number;
  readonly body: { readonly status: string; readonly code?: string; readonly reason?: string };
}

async function readyz({ url }: Bridge): Promise<Health> {
  const answer = await callHttp({ port: Number(url.port), path: '/readyz' });
  return { status: answer.status, body: await answer.json() };
}

async function ask(bridge: Bridge, client: 'legacy' | 'modern'): Promise<string> {
  const port = Number(bridge.url.port);
  if (client === 'modern') return (await postModern({ port }, modern(1, 'tools/list'))).text();
  return (await callHttp({ port, method: 'POST', headers: POST_HEADERS, body: JSON.stringify(initialize()) })).text();
}

const executable = (program: string): string => `#!${process.execPath}\n${program}\n`;
const WORKS = executable(`import(${JSON.stringify(fixture('echo'))});`);
const FAULTS = [
  ['does not exist anymore', undefined, 'ERR_UPSTREAM_SPAWN'],
  ['exits at once', executable('process.exit(3);'), 'ERR_UPSTREAM_EXITED'],
  ['never answers', executable('process.stdin.resume();'), /^ERR_UPSTREAM_(TIMEOUT|PROTOCOL|DETECT)$/],
] as const;

for (const [fault, program, code] of FAULTS) {
  for (const options of [[], ['--isolation', 'shared'], ['--protocol', 'legacy']]) {
    const way = options.join(' ') || 'by default';
    test(`a server that ${fault} at its first start makes /readyz say so, until one works (${way})`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-ready-'));
      t.teardown(() => rmSync(folder, { recursive: true }));
      const command = join(folder, 'server');
      const write = (text: string): void => {
        writeFileSync(command, text);
        chmodSync(command, 0o755);
      };
      write(program ?? WORKS);
      // Only a server that never answers is waited for in vain; another may take its time to start on a busy machine.
      const patience = fault === 'never answers' ? '5s' : '30s';
      const bridge = await startBridge([...options, '--request-timeout', patience, '--', command]);
      t.teardown(() => bridge.stop());
      t.deepEqual(await readyz(bridge), { status: 200, body: { status: 'ready' } }, 'it never ran');
      if (program === undefined) rmSync(command);
      await ask(bridge, 'legacy');
      const { status, body } = await readyz(bridge);
      t.is(status, 503);
      // The bridge itself shakes hands with a shared server, and waits longer than this client.
      if (options[1] === 'shared' && fault === 'never answers') return t.is(body.code, 'ERR_UPSTREAM_STARTING');
      if (typeof code === 'string') t.is(body.code, code);
      else t.regex(body.code ?? '', code);
      write(WORKS);
      t.regex(await ask(bridge, 'legacy'), /serverInfo/);
      t.deepEqual(await readyz(bridge), { status: 200, body: { status: 'ready' } });
    });
  }
}

test('the same where a modern client comes first', async (t) => {
  const bridge = await startBridge(['--', process.execPath, fixture('exits-before-initialize')]);
  t.teardown(() => bridge.stop());
  await ask(bridge, 'modern');
  const { status, body } = await readyz(bridge);
  t.is(status, 503);
  t.is(body.code, 'ERR_UPSTREAM_EXITED');
  t.regex(body.reason ?? '', /SOME_KEY is not set/);
});
