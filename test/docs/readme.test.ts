import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { generatedPart } from '../../scripts/generated-part.ts';
import { renderOptionsTable } from '../../scripts/options-table.ts';
import { asBlock, PROBES, withoutTimes } from '../../scripts/probe-reports.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { parseSnippet } from '../../src/cli/parse/snippet.ts';
import { read } from '../cli/config-file/read-text.ts';
import { startBridge } from '../support/bridge.ts';
import { connectStreamable } from '../support/sdk-client.ts';

const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
const manyServers = await readFile(new URL('../../docs/guide/many-servers.md', import.meta.url), 'utf8');
const compose = await readFile(new URL('../../examples/compose.yaml', import.meta.url), 'utf8');

const around = {
  cwd: '/',
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: () => ({ text: '', isOpenToAll: false }),
} as const;

const ENV = { GITHUB_TOKEN: 'x', SERVICE_KEY: 'x', TOKEN: 'x', ALICE_TOKEN: 'x' };
const VERBS = ['serve', 'connect', 'probe', 'snippet'];

/** What the documents call the file of a client, by whatever name. */
const [, clientFile = ''] = /```json\n(.*?)```/s.exec(manyServers) ?? [];

/** Everything in the documents that starts mcp-portage, as words after the program's name. */
const commands = [...`${readme}\n${manyServers}`.matchAll(/(?:^|`|npx -y )mcp-portage((?: [^`\n]+)+)/gm)]
  .map(([, rest = '']) => splitWords(rest))
  .filter(([first = '']) => first.startsWith('-') || VERBS.includes(first))
  .filter((words) => words.length > 1);

test('the README shows commands', (t) => {
  t.true(commands.length > 12, String(commands.length));
});

/** As a shell does, for the little quoting there is. */
function splitWords(text: string): string[] {
  return (text.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replaceAll(/['"]/g, ''));
}

for (const line of new Set(commands.map((words) => JSON.stringify(words)))) {
  const words: string[] = JSON.parse(line);
  test(`the command of the documents is accepted: mcp-portage ${words.join(' ')}`, async (t) => {
    const file = await read(clientFile, { env: ENV });
    t.notThrows(() => {
      const commandLine = parseCommandLine(words);
      if (commandLine.kind !== 'bridge') return;
      const surroundings = { ...around, env: ENV };
      const given = commandLine.options.has('config') ? file : undefined;
      if (commandLine.verb === 'snippet') parseSnippet(commandLine, surroundings, given);
      else parseConfig(commandLine, surroundings, given);
    });
  });
}

test('the walk-through serves the eight servers of its file on one port', async (t) => {
  const { servers, warnings } = await read(clientFile, { env: ENV });
  t.is(servers.length, 8);
  t.deepEqual(warnings, []);
  const commandLine = parseCommandLine(['--config', 'claude_desktop_config.json']);
  if (commandLine.kind !== 'bridge') return t.fail();
  const { config } = parseConfig(commandLine, { ...around, env: ENV }, await read(clientFile, { env: ENV }));
  t.deepEqual(
    config.servers.map(({ listing }) => listing?.segment),
    ['everything', 'notes', 'github', 'fetch', 'git', 'time', 'sqlite', 'tickets'],
  );
});

test('every option of mcp-portage named in a row about another bridge exists', (t) => {
  const rows = readme.split('\n').filter((line) => line.startsWith('| `'));
  const ours = rows.map((row) => row.split(' | ')[1] ?? '');
  for (const option of ours.flatMap((cell) => cell.match(/--[a-z-]+/g) ?? [])) {
    t.notThrows(() => parseCommandLine([`${option}=1`, '--', 'x']), option);
  }
});

test('the table of options is up to date (npm run docs)', (t) => {
  t.is(generatedPart(readme, 'options'), renderOptionsTable());
});

for (const [name, probe] of Object.entries(PROBES)) {
  test(`the README shows what comes out, but for the times: ${name} (npm run docs)`, async (t) => {
    t.is(withoutTimes(generatedPart(readme, name)), withoutTimes(asBlock(await probe())));
  });
}

test('the client configurations of the README are JSON and the same as in examples/clients', async (t) => {
  const blocks = [...readme.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => JSON.stringify(JSON.parse(text)));
  const folder = new URL('../../examples/clients/', import.meta.url);
  const files = (await readdir(folder)).map((name) => readFile(new URL(name, folder), 'utf8'));
  const examples = (await Promise.all(files)).map((text) => JSON.stringify(JSON.parse(text)));
  t.deepEqual([...blocks].sort(), [...examples].sort());
});

test('the modern client of the README is the one in examples, and calls a tool of a legacy server', async (t) => {
  const file = new URL('../../examples/modern-client.js', import.meta.url);
  const [, shown = ''] = /```js\n(.*?)```/s.exec(readme) ?? [];
  t.is(shown, await readFile(file, 'utf8'));
  const [, output = ''] = /It prints `(.*)`/.exec(readme) ?? [];
  const bridge = await startBridge(['--', 'npx', '-y', '@modelcontextprotocol/server-everything']);
  t.teardown(() => bridge.stop());
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(file), bridge.url.href]);
  t.is(stdout.trim(), output);
});

test('links of the README lead to files that exist', async (t) => {
  for (const [, target = ''] of readme.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
    const found = readFile(new URL(`../../${target}`, import.meta.url)).catch(
      (error: NodeJS.ErrnoException) => error.code,
    );
    t.not(await found, 'ENOENT', target);
  }
});

test('the settings in the compose example are accepted', (t) => {
  const env = Object.fromEntries(
    [...compose.matchAll(/(MCP_PORTAGE_[A-Z_]+): '?([^'\n]+)'?/g)].map(([, name, value]) => [name, value]),
  );
  const [, command = ''] = /command: (\['--'.*\])/.exec(compose) ?? [];
  const commandLine = parseCommandLine(JSON.parse(command.replaceAll("'", '"')));
  if (commandLine.kind !== 'bridge') return t.fail();
  const { config, warnings } = parseConfig(commandLine, { ...around, env });
  t.like(config.listener, { access: { allowHosts: ['tools'] } });
  t.deepEqual(warnings, []);
});

test('the quick start of the README serves a server whose tools can be called', async (t) => {
  const [, command = ''] = /```sh\nnpx -y mcp-portage (.*)\n```/.exec(readme) ?? [];
  const bridge = await startBridge(command.split(' '));
  t.teardown(() => bridge.stop());
  const { client, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  const result = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  t.regex(JSON.stringify(result.content), /hello/);
});
