import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseConfig } from '../../../src/cli/parse/config.ts';
import { affinityOf } from '../../../src/http/auth/affinity.ts';

function affinity(...argv: string[]): string | undefined {
  const commandLine = parseCommandLine([...argv, '--', 'server']);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config } = parseConfig(commandLine, {
    env: { TOKEN: 'a-token-of-somebody' },
    cwd: '/',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  });
  return affinityOf(config)({ principal: 'anonymous' });
}

test('callers of this machine share sessions: they are one user', (t) => {
  t.is(affinity(), '');
  t.is(affinity('--host', '::1'), '');
  t.is(affinity('--base-url', 'http://localhost:9000/x'), '');
  t.is(affinity('connect'), '');
});

test('strangers share nothing', (t) => {
  t.is(affinity('--host', '0.0.0.0', '--allow-anonymous'), undefined);
  t.is(affinity('--host', '192.168.1.5', '--allow-anonymous'), undefined);
  t.is(affinity('--base-url', 'https://tools.example'), undefined, 'behind a reverse proxy on this machine');
});

test('strangers share a server that the user wants to be shared by all', (t) => {
  t.is(affinity('--host', '0.0.0.0', '--allow-anonymous', '--isolation', 'shared'), '');
});

test('callers with a name share with themselves only', (t) => {
  t.is(affinity('--host', '0.0.0.0', '--auth-token', 'env:TOKEN'), '');
});
