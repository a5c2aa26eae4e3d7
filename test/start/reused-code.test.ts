/** Code that V8 compiled at one start is reused by the next, also the code that is loaded while the bridge runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

const EXECUTABLE = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
const RECORDER = fileURLToPath(new URL('record-rejected.cjs', import.meta.url));
const LISTENS = /"url":"(http:[^"]*)\/readyz"/;
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'first', version: '1' } },
};

/** Serves one client. Returns the files of the program that were compiled. */
async function serve(t: ExecutionContext, home: string, argv: readonly string[]): Promise<readonly string[]> {
  const record = join(home, 'compiled');
  await writeFile(record, '');
  const env = { PATH: process.env.PATH, HOME: home, LOCALAPPDATA: home, COMPILED_FILES: record };
  const child = spawn(process.execPath, ['--require', RECORDER, EXECUTABLE, '--port', '0', ...argv], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  const origin = await new Promise<string>((resolve, reject) => {
    let output = '';
    child.stderr.on('data', (chunk) => {
      output += String(chunk);
      const found = LISTENS.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
    closed.then(() => reject(new Error(output)));
  });
  const answer = await fetch(`${origin}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(INITIALIZE),
  });
  await answer.text();
  child.kill('SIGTERM');
  await closed;
  return (await readFile(record, 'utf8')).split('\n').filter((name) => name !== '');
}

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'mcp-portage-reused-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A server that answers nothing: its client gets an error, by the same code as an answer. */
const SERVER = ['--', process.execPath, '-e', ''];

test('the files for clients are compiled once for all starts, as those before them', async (t) => {
  const home = await folder(t);
  const compiled = await serve(t, home, SERVER);
  t.true(compiled.includes('cli.cjs') && compiled.includes('clients.cjs'));
  t.deepEqual(await serve(t, home, SERVER), []);
});

test('the files that read a configuration are compiled once for all starts', async (t) => {
  const home = await folder(t);
  const config = join(home, 'servers.yaml');
  await writeFile(
    config,
    `mcpServers:\n  one:\n    command: ${JSON.stringify(process.execPath)}\n    args: ['-e', '']\n`,
  );
  const argv = ['--config', config];
  t.true((await serve(t, home, argv)).includes('yaml-tree.cjs'));
  t.deepEqual(await serve(t, home, argv), []);
});
