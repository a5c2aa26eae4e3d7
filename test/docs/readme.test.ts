import { readFile } from 'node:fs/promises';
import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { startBridge } from '../support/bridge.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { blocksOf, commandsOf, documentAt, GUIDES, ROOT } from './documents.ts';

const text = documentAt('README.md');
const blocks = blocksOf({ path: 'README.md', text });

test('the README is read in a few minutes', (t) => {
  t.true(text.split(/\s+/).length <= 1000);
});

test('the quick start of the README serves a server whose tools can be called', async (t) => {
  const [command = ''] = blocks.flatMap(commandsOf);
  t.regex(command, /^npx -y mcp-portage -- /);
  const bridge = await startBridge(command.split(' ').slice(3));
  t.teardown(() => bridge.stop());
  const { client, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  const result = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
  t.regex(JSON.stringify(result.content), /hello/);
});

test('the documents name the Node that the package asks for', async (t) => {
  const { engines } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'));
  const named = [...GUIDES, { text: documentAt('CONTRIBUTING.md') }].flatMap((document) => [
    ...document.text.matchAll(/Node (\d+\.\d+) or newer/g),
  ]);
  t.true(named.length >= 3);
  for (const [, version] of named) t.is(`>=${version}`, engines.node);
});

test('every option of mcp-portage named in a row about another bridge exists', (t) => {
  const rows = documentAt('docs/guide/migrate.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const ours = rows.map((row) => row.split(' | ')[1] ?? '');
  const options = ours.flatMap((cell) => cell.match(/--[a-z-]+/g) ?? []);
  t.true(options.length > 25);
  for (const option of options) {
    t.notThrows(() => parseCommandLine([`${option}=1`, '--', 'x']), option);
  }
});
