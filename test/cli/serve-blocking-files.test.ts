/** Files and folders that stop whoever touches them, under a program that serves clients. */
import { execFileSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import anyTest, { type TestFn } from 'ava';
import { createSocketFolder, startSocketBridge } from '../support/socket-bridge.ts';
import { waitFor } from '../support/wait-for.ts';

/** Windows has no pipes among its files, and other systems have no folder in which nothing can be made. */
const test = (process.platform === 'linux' ? anyTest : anyTest.skip) as TestFn;
const SERVER = [process.execPath, '-e', 'process.stdin.resume()'] as const;

test('a configuration file that becomes a pipe is told, and stops neither the bridge nor its end', async (t) => {
  const folder = await createSocketFolder(t);
  const [config, pipe] = [join(folder, 'servers.json'), join(folder, 'pipe')];
  const [command, ...args] = SERVER;
  writeFileSync(config, JSON.stringify({ mcpServers: { one: { command, args } } }), { mode: 0o600 });
  const bridge = startSocketBridge(t, ['--socket', join(folder, 's'), '--config', config]);
  await bridge.listens();
  execFileSync('mkfifo', ['-m', '600', pipe]);
  renameSync(pipe, config);
  bridge.kill('SIGHUP');
  await waitFor(() => bridge.logs.some(({ msg = '' }) => msg.includes('so the previous configuration stays in use')));
  bridge.kill('SIGTERM');
  t.deepEqual(await bridge.exited, { code: 0, signal: null });
});

test('a state folder in which nothing can be made is told, and keeps neither the bridge busy nor its end', async (t) => {
  const folder = await createSocketFolder(t);
  const bridge = startSocketBridge(t, ['--socket', join(folder, 's'), '--usage', '--', ...SERVER], {
    env: { MCP_PORTAGE_STATE_DIR: '/proc/mcp-portage' },
  });
  await bridge.listens();
  await waitFor(() =>
    bridge.logs.some(({ msg = '' }) => msg.includes('the usage cannot be kept in /proc/mcp-portage')),
  );
  bridge.kill('SIGTERM');
  t.deepEqual(await bridge.exited, { code: 0, signal: null });
});
