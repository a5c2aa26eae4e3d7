import test from 'ava';
import { describeCallers } from '../../src/bridge/caller-policy.ts';
import { type PooledServer, parkingLimitsOf, poolLimitsOf } from '../../src/bridge/join-eras.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { QueueSizes } from '../../src/collections/queue-sizes.ts';

function serverOf(line: string): PooledServer {
  const commandLine = parseCommandLine([...line.split(' '), '--', 'server']);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config } = parseConfig(commandLine, {
    env: { TOKEN: 'a-token-of-somebody', OTHER: 'a-token-of-another' },
    cwd: '/',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  });
  const [server] = config.servers;
  return {
    ...server,
    queues: new QueueSizes(),
    outcomes: undefined,
    callers: describeCallers(config.listener, server),
  };
}

const limits = (line: string) => poolLimitsOf(serverOf(line));

test('where callers have several names one of them gets half of the pool and of those who wait for it, else all', (t) => {
  t.like(limits('--auth-token a=env:TOKEN --auth-token b=env:OTHER'), {
    total: 16,
    perCaller: 8,
    waitingPerCaller: 512,
  });
  t.like(limits('--host 0.0.0.0 --auth-token env:TOKEN'), { total: 16, perCaller: 16, waitingPerCaller: 1024 });
  t.like(limits('--pool-size 4'), { total: 4, perCaller: 4 });
});

test('unknown callers, who all have one name and share no session, may use the whole pool', (t) => {
  t.like(limits('--host 0.0.0.0 --allow-anonymous --map-header X-User=USER_ENV'), { total: 16, perCaller: 16 });
  t.like(limits('--host 0.0.0.0 --allow-anonymous --isolation shared'), { total: 256, perCaller: 256 });
});

test('where callers have several names one of them has half of the waiting calls and their bytes, else all', (t) => {
  const ofCaller = (line: string) => {
    const { perPrincipal, bytesPerPrincipal } = parkingLimitsOf(
      serverOf(`--max-parked-calls 9 --max-parked-bytes 2m ${line}`),
    );
    return [perPrincipal, bytesPerPrincipal / (1024 * 1024)];
  };
  t.deepEqual(ofCaller('--port 0'), [9, 2]);
  t.deepEqual(ofCaller('--host 0.0.0.0 --allow-anonymous'), [9, 2]);
  t.deepEqual(ofCaller('--auth-token a=env:TOKEN'), [9, 2]);
  t.deepEqual(ofCaller('--auth-token a=env:TOKEN --auth-token b=env:OTHER'), [5, 1]);
  t.deepEqual(ofCaller('--map-header X-User=USER_ENV'), [5, 1]);
});
