import { resolve } from 'node:path';
import test from 'ava';
import { type BridgeCommand, parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseReport, parseTop, parseView } from '../../../src/cli/parse/looking.ts';

const URL_OF_BRIDGE = 'http://127.0.0.1:8000';

const AROUND = {
  cwd: '/',
  env: { HOME: '/home/ada' },
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: () => ({ text: '', isOpenToAll: false }),
} as const;

function commandOf(words: readonly string[]): BridgeCommand {
  const commandLine = parseCommandLine(words);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  return commandLine;
}

const top = (...words: string[]) => parseTop(commandOf(['top', ...words]), AROUND);
const report = (...words: string[]) => parseReport(commandOf(['report', ...words]), AROUND);

test('the replica that answers is shown, and all of them with --all', (t) => {
  t.is(top(URL_OF_BRIDGE).replicas, 'one');
  t.is(top('--all', URL_OF_BRIDGE).replicas, 'all');
  t.like(report('--url', URL_OF_BRIDGE).source, { replicas: 'one' });
  t.like(report('--all', '--url', URL_OF_BRIDGE).source, { replicas: 'all' });
});

test('counts in a folder are those of no replicas', (t) => {
  t.deepEqual(Object.keys(report().source), ['stateDirectory']);
  t.throws(() => report('--all'), { code: 'ERR_CONFIG_COMBINATION', message: /--all .* --url/ });
});

test('an address without a scheme, and a command, are answered with a URL', (t) => {
  for (const address of ['localhost:8000', 'nope'])
    t.throws(() => report('--url', address), { code: 'ERR_CONFIG_OPTION', message: /^An address without a scheme/ });
  t.throws(() => report('--', 'npx', 'server'), { message: /mcp-portage report --url http:\/\/127/ });
});

function view(...words: string[]) {
  const commandLine = parseCommandLine(['view', ...words]);
  if (commandLine.kind !== 'view') throw new Error(`got ${commandLine.kind}`);
  return parseView(commandLine, AROUND);
}

test('view takes a file, or any address of a running bridge', (t) => {
  t.deepEqual(view('session.jsonl').source, { kind: 'file', path: resolve('/', 'session.jsonl'), mode: 'once' });
  t.like(view('--follow', 'session.jsonl').source, { mode: 'follows' });
  t.like(view('--', '-session.jsonl').source, { path: resolve('/', '-session.jsonl') });
  t.like(view(URL_OF_BRIDGE).source, { kind: 'bridge', token: undefined });
  t.throws(() => view(), { code: 'ERR_CONFIG_OPTION', message: /mcp-portage view session\.jsonl/ });
  t.throws(() => view('--method', '{1..3}', 'session.jsonl'), { message: /--method: expected a pattern/ });
});

test('--full and --json can be combined, and filters are patterns', (t) => {
  t.deepEqual(
    [[], ['--full'], ['--json'], ['--full', '--json']].map((words) => view(...words, 'file').format),
    ['lines', 'full', 'json', 'full-json'],
  );
  const { filter } = view('--errors', '--method', 'tools/*', '--client', 'claude-*', 'file');
  t.is(filter.outcomes, 'failed');
  t.true(filter.method?.('tools/call'));
  t.false(filter.client?.('cursor'));
  t.is(filter.server, undefined);
});
