import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { stub } from './stdio-program.ts';

/** What `serve` answers to the `initialize` of a client on its stdin; and ends it. */
async function answerOnStdin(t: ExecutionContext, ...args: readonly string[]): Promise<string> {
  const [command, bin] = BRIDGE_COMMAND;
  const child = spawn(command, [bin, 'serve', '--port', '0', ...args], { stdio: ['pipe', 'pipe', 'ignore'] });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  child.kill('SIGTERM');
  await once(child, 'exit');
  return line;
}

test('where servers of a file are served, the command names the file and a server of it', async (t) => {
  const folder = await createConfigFolder(t);
  const [command, ...args] = stub('echo').slice(1);
  const servers = { first: { command, args }, second: { command, args } };
  const file = await folder.write('my servers.json', { mcpServers: servers });
  const { error } = JSON.parse(await answerOnStdin(t, '--config', file)) as { error: { message: string } };
  const told = /as in (mcp-portage connect .*)$/.exec(error.message)?.[1] ?? '';
  t.is(told, `mcp-portage connect --config '${file}' first`);
});

test('a client that speaks on the stdin of serve is told to use connect, and nothing else is on stdout', async (t) => {
  const [command, bin] = BRIDGE_COMMAND;
  const words = [bin, 'serve', '--port', '0', '--log-format', 'json', ...stub('echo')];
  const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const log: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line));
  child.stdin.write('not json\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  child.stdin.write('{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}\n');
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { id, error } = JSON.parse(line) as { id: unknown; error: { code: number; message: string } };
  t.is(id, 'a');
  t.is(error.code, -32600);
  t.regex(error.message, /use connect, as in mcp-portage connect -- .*echo\.js/);
  // The end of stdin ends no server.
  child.stdin.end();
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  t.is(code, 0);
  t.true(log.some((text) => text.includes('use connect, as in')));
});
