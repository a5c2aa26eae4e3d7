/** The files that documents show: each is read by the program that it is for, or by a parser of its language. */
import { spawnSync } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { read } from '../cli/config-file/read-text.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { ownPort } from '../support/own-port.ts';
import { type Block, blocksOf, documentAt, FOR_USERS, splitWords } from './documents.ts';

const SECRET = 'x'.repeat(40);
const ENV = { GITHUB_TOKEN: SECRET, TICKETS_TOKEN: SECRET, MQTT_PASSWORD: SECRET };

const blocksIn = (language: string): readonly Block[] =>
  FOR_USERS.flatMap(blocksOf).filter((block) => block.language === language);

const [auditLine, ...clientFiles] = [...blocksIn('json'), ...blocksIn('jsonc')].sort(
  (a, b) => Number(b.path.endsWith('/audit.md')) - Number(a.path.endsWith('/audit.md')),
);

test('the documents show files of clients', (t) => {
  t.true(clientFiles.length > 7, String(clientFiles.length));
});

for (const [index, { path, text }] of clientFiles.entries()) {
  test(`a file of a client is read without a warning: ${path}, ${index + 1}`, async (t) => {
    const { servers, warnings } = await read(text, { env: ENV });
    t.true(servers.length > 0);
    t.deepEqual(warnings, []);
    for (const { target } of servers) {
      if (target.kind !== 'command') continue;
      const at = target.args.indexOf('connect');
      if (at >= 0) t.notThrows(() => configOf(target.args.slice(at)), path);
    }
  });
}

test('the line of the audit file has the members of its table', (t) => {
  const table = [...documentAt('docs/reference/audit.md').matchAll(/^\| (`\w+`(?:, `\w+`)*) \|/gm)];
  const members = table.flatMap(([, cell = '']) => [...cell.matchAll(/\w+/g)].map(([name]) => name));
  t.deepEqual(Object.keys(JSON.parse(auditLine?.text ?? '')), members);
});

/** As mcp-portage reads it, with every file that it names. */
function configOf(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const commandLine = parseCommandLine(words);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const readFile = () => ({ text: SECRET, isOpenToAll: false });
  return parseConfig(commandLine, { cwd: '/', env, platform: 'linux', stderrIsTerminal: false, readFile });
}

// ---- YAML

test('every block of YAML is checked here', (t) => {
  t.deepEqual(
    blocksIn('yaml')
      .map(({ path }) => path)
      .sort(),
    ['docs/reference/metrics.md', 'docs/reference/scaling.md'],
  );
});

test('the configuration of Prometheus asks for the metrics of a bridge', (t) => {
  const [block] = blocksIn('yaml').filter(({ path }) => path.endsWith('/metrics.md'));
  const [job] = parse(block?.text ?? '', { strict: true }).scrape_configs;
  t.deepEqual(Object.keys(job), ['job_name', 'static_configs', 'authorization']);
  t.deepEqual(job.static_configs, [{ targets: ['127.0.0.1:8000'] }]);
});

test('the configuration of Prometheus finds all replicas by asking one', (t) => {
  const block = blocksIn('yaml').find(({ path }) => path.endsWith('/scaling.md'));
  const [job] = parse(block?.text ?? '', { strict: true }).scrape_configs;
  const [discovery] = job.http_sd_configs;
  t.is(new URL(discovery.url).pathname, '/metrics/replicas');
  t.deepEqual(discovery.authorization, job.authorization);
});

// ---- systemd

/** By the name in its first line: `# ~/.config/systemd/user/NAME`. */
const units = blocksIn('ini').map(({ text }) => [/^# .*\/([\w.-]+)\n/.exec(text)?.[1] ?? '', text] as const);

test('the command of each unit of systemd is accepted', async (t) => {
  const file = await read({ mcpServers: { notes: { command: 'notes' } } });
  const commands = units.flatMap(([, text]) => [...text.matchAll(/^ExecStart=\S*\/mcp-portage (.*)$/gm)]);
  t.true(commands.length > 0);
  for (const [, words = ''] of commands) {
    const commandLine = parseCommandLine(splitWords(words));
    if (commandLine.kind !== 'bridge') return t.fail(words);
    const around = { cwd: '/', env: {}, platform: 'linux', stderrIsTerminal: false } as const;
    const readFile = () => ({ text: '', isOpenToAll: false });
    t.notThrows(() => parseConfig(commandLine, { ...around, readFile }, file), words);
  }
});

const isHere = (program: string, ...args: readonly string[]): boolean => spawnSync(program, args).status === 0;
const testWithSystemd = isHere('systemd-analyze', '--version') ? test : test.skip;

testWithSystemd('systemd finds nothing to say about the units of the guides', async (t) => {
  const folder = await createConfigFolder(t);
  const files = await Promise.all(
    // The program is not installed here.
    units.map(([name, text]) => folder.write(name, text.replaceAll('/usr/bin/mcp-portage', '/bin/true'))),
  );
  t.true(files.length >= 2);
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--user', '--man=no', ...files], {
    encoding: 'utf8',
    env: { ...process.env, XDG_RUNTIME_DIR: folder.path },
  });
  t.notRegex(stderr, /mcp-portage\./);
  t.is(status, 0, stderr);
});

// ---- nginx

const testWithNginx = isHere('nginx', '-v') ? test : test.skip;

testWithNginx('nginx takes what the guides show of it', async (t) => {
  const blocks = blocksIn('nginx');
  t.true(blocks.length > 0);
  for (const { path, text } of blocks) await checkWithNginx(t, path, text);
});

async function checkWithNginx(t: ExecutionContext, path: string, locations: string): Promise<void> {
  const folder = await createConfigFolder(t);
  const own = ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    const directive = name === 'body' ? 'client_body_temp_path' : `${name}_temp_path`;
    return `${directive} ${folder.path}/${name};`;
  });
  const server = `server { listen 127.0.0.1:${await ownPort()}; ${locations} }`;
  const text = `pid ${folder.path}/pid; error_log stderr; events {} http { access_log off; ${own.join(' ')} ${server} }`;
  const { status, stderr } = spawnSync('nginx', ['-t', '-e', 'stderr', '-c', await folder.write('nginx.conf', text)], {
    encoding: 'utf8',
  });
  t.is(status, 0, `${path}: ${stderr}`);
}
