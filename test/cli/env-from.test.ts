/** Variables of a file, for a server of the built program; `npm test` builds it first. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startBridge } from '../support/bridge.ts';
import { ask, openClient } from '../support/config-bridge.ts';
import { isAlive } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { type StdioProgram, startConnect, stub } from './stdio-program.ts';

async function writeVariables(t: ExecutionContext, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'env-from-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'variables');
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

async function askFor(variable: string, id: number, program: StdioProgram): Promise<unknown> {
  const params = { name: 'environment', arguments: { variable } };
  program.send({ jsonrpc: '2.0', id, method: 'tools/call', params });
  const { result } = await program.answerTo(id);
  return (result?.content as readonly { readonly text: string }[] | undefined)?.[0]?.text;
}

test('the server has the variables of a file, those of the command line win, and the file is read once', async (t) => {
  const file = await writeVariables(t, "# ours\nexport KEY='of the file'\nWINS=no\nNODE_OPTIONS=--title=server\n");
  const program = startConnect(t, ['--env-from', file, '--env', 'WINS=yes', ...stub('tells-environment')]);
  await program.initialize();
  await writeFile(file, 'KEY=later\n');
  t.is(await askFor('KEY', 1, program), 'of the file');
  t.is(await askFor('WINS', 2, program), 'yes');
  t.is(await askFor('NODE_OPTIONS', 3, program), '--title=server');
});

test('a server that is started again has the variables that it had', async (t) => {
  const file = await writeVariables(t, 'KEY=of the file\n');
  const bridge = await startBridge(['--env-from', file, '--isolation', 'shared', ...stub('tells-environment')]);
  t.teardown(async () => void (await bridge.stop()));
  const client = await openClient(t, new URL('/', bridge.url));
  const first = Number(await ask(client, 'pid'));
  await writeFile(file, 'KEY=later\n');
  process.kill(first, 'SIGKILL');
  await waitFor(() => !isAlive(first), { message: 'the server to be gone' });
  // A server that ended so soon after its start is not started again at once.
  const again = await waitFor(() => ask(client, 'pid').catch(() => false), { message: 'the server to run again' });
  t.not(again, String(first));
  t.is(await ask(client, 'KEY'), 'of the file');
});

test('a file that is not text is refused without a word of it', async (t) => {
  const file = await writeVariables(t, 'KEY=hunter2\0');
  const program = startConnect(t, ['--env-from', file, ...stub('tells-environment')]);
  t.is((await program.exited).code, 2);
  t.regex(program.log(), /--env-from .*variables: this file is not a text file\./);
  t.false(program.log().includes('hunter2'));
});
