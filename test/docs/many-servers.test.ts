import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { read } from '../cli/config-file/read-text.ts';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { baseOf, EVERYTHING, FILESYSTEM, NODE, openClient, serveFile } from '../support/config-bridge.ts';
import { type ConfigFolder, createConfigFolder } from '../support/config-folder.ts';
import { blocksOf, documentAt } from './documents.ts';

const path = 'docs/guide/many-servers.md';
const [clientFile] = blocksOf({ path, text: documentAt(path) }).filter(({ language }) => language === 'json');
const ENV = { GITHUB_TOKEN: 'x'.repeat(40) };

test('the walk-through serves the eight servers of its file on one port', async (t) => {
  const text = clientFile?.text ?? '';
  const { servers, warnings } = await read(text, { env: ENV });
  t.is(servers.length, 8);
  t.deepEqual(warnings, []);
  const commandLine = parseCommandLine(['--config', 'claude_desktop_config.json']);
  if (commandLine.kind !== 'bridge') return t.fail();
  const around = {
    cwd: '/',
    env: ENV,
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  } as const;
  const { config } = parseConfig(commandLine, around, await read(text, { env: ENV }));
  t.deepEqual(
    config.servers.map(({ listing }) => listing?.segment),
    ['everything', 'notes', 'github', 'fetch', 'git', 'time', 'sqlite', 'tickets'],
  );
});

/** As in the walk-through, with the two of its servers that are installed here. */
async function writeFileOfClient({ path: folder, write }: ConfigFolder): Promise<string> {
  await mkdir(join(folder, 'notes'));
  const mcpServers = {
    everything: { command: NODE, args: [EVERYTHING] },
    notes: { command: NODE, args: [FILESYSTEM, join(folder, 'notes')] },
  };
  return write('claude_desktop_config.json', { mcpServers });
}

test('the commands of the walk-through serve a file of Claude Desktop, print a snippet and a table', async (t) => {
  const file = await writeFileOfClient(await createConfigFolder(t));
  const bridge = await serveFile(t, file);
  for (const name of ['everything', 'notes']) {
    const client = await openClient(t, baseOf(bridge, name));
    t.true((await client.listTools()).tools.length > 0, name);
  }

  const run = (...args: string[]) => promisify(execFile)(BRIDGE_COMMAND[0], [BRIDGE_COMMAND[1], ...args]);
  const { stdout: snippet } = await run('snippet', '--for', 'cursor', '--config', file);
  t.deepEqual(Object.keys(JSON.parse(snippet).mcpServers), ['everything', 'notes']);
  const { stdout: table } = await run('probe', '--config', file);
  t.regex(table, /everything/);
  t.regex(table, /notes/);
});
