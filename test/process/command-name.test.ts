import test from 'ava';
import { mayDownload, nameCommand, scriptRunner, shortCommandName } from '../../src/process/command-name.ts';

const names: readonly (readonly [command: string, args: readonly string[], name: string])[] = [
  ['/usr/bin/node', ['/srv/app/server.js', '--verbose'], 'node server.js'],
  ['npx', ['-y', '@modelcontextprotocol/server-everything', 'stdio'], 'npx @modelcontextprotocol/server-everything'],
  ['C:\\Program Files\\nodejs\\npx.cmd', ['some-server@1.2.3'], 'npx some-server@1.2.3'],
  ['uvx', ['mcp-server-git', '--repository', '/home/me'], 'uvx mcp-server-git'],
  ['python3', ['-m', 'my.server'], 'python3 my.server'],
  ['./bin/server', ['serve'], 'server'],
  ['server', ['--token', 's3cr3t'], 'server'],
  ['server', ['s3cr3t'], 'server'],
  ['sh', ['-c', 'TOKEN=s3cr3t server'], 'sh'],
  ['npx', ['postgres://me:s3cr3t@host/db'], 'npx'],
  ['node', ['-e', 'serve("s3cr3t")'], 'node'],
  ['npx', ['https://host.example/server.js?key=s3cr3t'], 'npx'],
  ['npx', ['server --token=s3cr3t'], 'npx'],
  ['node', [], 'node'],
  ['node', ['--version'], 'node'],
  ['npx', ['@scope/server@^1.2.0'], 'npx @scope/server@^1.2.0'],
  ['node', ['/srv/my servers/one.cjs'], 'node one.cjs'],
  ['tsx', ['/srv/my servers/one.mts'], 'tsx one.mts'],
  ['python', ['/srv/my servers/one.py'], 'python one.py'],
  ['ruby', ['/srv/my servers/one.rb'], 'ruby one.rb'],
  ['php', ['/srv/my servers/one.php'], 'php one.php'],
  ['perl', ['/srv/my servers/one.pl'], 'perl one.pl'],
  ['C:\\servers\\server.EXE', ['s3cr3t'], 'server'],
  ['server.bat', [], 'server'],
  ['server.exe.old', [], 'server.exe.old'],
];
for (const [command, args, name] of names) {
  test(`calls "${[command, ...args].join(' ')}" ${name}`, (t) => {
    t.is(nameCommand(command, args), name);
  });
}

test('names what any of the usual launchers runs', (t) => {
  const launchers = ['node', 'npx', 'tsx', 'bun', 'bunx', 'pnpx', 'ts-node', 'deno'];
  const others = ['python', 'python3', 'uvx', 'pipx', 'ruby', 'php', 'perl'];
  for (const launcher of [...launchers, ...others]) t.is(nameCommand(launcher, ['server']), `${launcher} server`);
});

for (const [name, short] of [
  ['node server.js', 'server'],
  ['npx @scope/server-everything@1.2.0', 'server-everything'],
  ['uvx mcp-server-git', 'mcp-server-git'],
  ['docker', 'docker'],
  ['everything', 'everything'],
  ['bunx server@~1.2', 'server'],
  ['node server.cjs', 'server'],
  ['tsx server.mts', 'server'],
  ['python3 server.py', 'server'],
  ['ruby server.rb', 'server'],
  ['php server.php', 'server'],
  ['perl server.pl', 'server'],
  ['node server.js.old', 'server.js.old'],
  ['node .js', 'node .js'],
] as const) {
  test(`in short ${name} is ${short}`, (t) => t.is(shortCommandName(name), short));
}

test('a command that fetches what it runs may take as long as a download', (t) => {
  const fetching = [
    'npx',
    'npm',
    'pnpx',
    'pnpm',
    'yarn',
    'bunx',
    'bun',
    'uvx',
    'uv',
    'pipx',
    'deno',
    'docker',
    'podman',
  ];
  for (const launcher of fetching) t.true(mayDownload(`${launcher} server`), launcher);
  for (const name of ['node server.js', 'python3 npx', 'npxx', 'server']) t.false(mayDownload(name), name);
});

test('a script is told by the end of its name, and by who runs it', (t) => {
  for (const file of ['a.js', 'a.cjs', 'a.mjs']) t.is(scriptRunner(file), 'node', file);
  t.is(scriptRunner('a.py'), 'python3');
  for (const file of ['a.json', 'a.js.old', 'ajs', 'a.pyc', 'apy', 'a']) t.is(scriptRunner(file), undefined, file);
});
