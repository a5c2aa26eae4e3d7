import test from 'ava';
import { poolLimitsOf } from '../../src/bridge/join-eras.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse-config.ts';

function limits(line: string) {
  const commandLine = parseCommandLine([...line.split(' '), '--', 'server']);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config } = parseConfig(commandLine, {
    env: { TOKEN: 'a-token-of-somebody' },
    cwd: '/',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  });
  return poolLimitsOf(config);
}

test('one caller gets a part of the pool', (t) => {
  t.deepEqual(limits('--host 0.0.0.0 --auth-token env:TOKEN'), { total: 16, perPrincipal: 8 });
  t.deepEqual(limits('--pool-size 4'), { total: 4, perPrincipal: 4 });
});

test('strangers, who all have one name and share no session, may use the whole pool', (t) => {
  t.deepEqual(limits('--host 0.0.0.0 --allow-anonymous'), { total: 16, perPrincipal: 16 });
  t.deepEqual(limits('--host 0.0.0.0 --allow-anonymous --isolation shared'), { total: 256, perPrincipal: 8 });
});
