import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import { serverProgram } from '../support/server-program.ts';

const SERVER = serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url));
const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

/** Runs the bridge from its source until it has opened a session, and returns the modules that it has run. */
async function modulesOfOneSession(t: ExecutionContext): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'modules-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const program = ['--import=./scripts/typescript.js', 'scripts/from-source.ts', 'serve', '--port', '0'];
  const bridge = spawn(process.execPath, [...program, '--', process.execPath, SERVER], {
    env: { ...process.env, NODE_V8_COVERAGE: folder },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  t.teardown(() => void bridge.kill('SIGKILL'));
  const ended = once(bridge, 'exit');
  let url: string | undefined;
  for await (const line of createInterface({ input: bridge.stderr })) {
    url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await fetch(url ?? '', { method: 'POST', headers, body: JSON.stringify(INITIALIZE) });
  t.is(response.status, 200);
  t.regex(await response.text(), /serverInfo/);
  bridge.stderr.resume();
  bridge.kill('SIGTERM');
  await ended;
  return readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] };
    return result.flatMap(({ url: module }) => /\/(src\/.*\.ts)$/.exec(module)?.[1] ?? []);
  });
}

test('a bridge without a store loads nothing of what replicas need', async (t) => {
  const modules = await modulesOfOneSession(t);
  t.true(modules.includes('src/bridge/serve-http.ts'), 'the modules that have run are known');
  t.deepEqual(
    modules.filter((module) => module.startsWith('src/replicas/')),
    [],
  );
});
