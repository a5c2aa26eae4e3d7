import test from 'ava';
import { nameCommand, shortCommandName } from '../../src/process/command-name.ts';

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
];
for (const [command, args, name] of names) {
  test(`calls "${[command, ...args].join(' ')}" ${name}`, (t) => {
    t.is(nameCommand(command, args), name);
  });
}

for (const [name, short] of [
  ['node server.js', 'server'],
  ['npx @scope/server-everything@1.2.0', 'server-everything'],
  ['uvx mcp-server-git', 'mcp-server-git'],
  ['docker', 'docker'],
  ['everything', 'everything'],
] as const) {
  test(`in short ${name} is ${short}`, (t) => t.is(shortCommandName(name), short));
}
