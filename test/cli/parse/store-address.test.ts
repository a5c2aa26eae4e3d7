import test from 'ava';
import { parseRedisAddress } from '../../../src/cli/parse/store-address.ts';

const PLAIN = {
  masterName: undefined,
  user: undefined,
  password: undefined,
  sentinelLogin: undefined,
  database: 0,
  tls: false,
};
const HOST = { host: 'store.example', port: 6379 };

test('reads a server, with user, password and database', (t) => {
  t.deepEqual(parseRedisAddress('redis://store.example', 'x'), { ...PLAIN, topology: 'single', hosts: [HOST] });
  t.deepEqual(parseRedisAddress('rediss://al%40ice:p%3Ass@store.example:7000/3', 'x'), {
    ...PLAIN,
    topology: 'single',
    hosts: [{ host: 'store.example', port: 7000 }],
    user: 'al@ice',
    password: 'p:ss',
    database: 3,
    tls: true,
  });
  t.is(parseRedisAddress('redis://:only@[::1]:6380', 'x').password, 'only');
  t.deepEqual(parseRedisAddress('redis://:only@[::1]:6380', 'x').hosts, [{ host: '::1', port: 6380 }]);
});

test('reads sentinels and the nodes of a cluster', (t) => {
  t.deepEqual(parseRedisAddress('redis+sentinel://:pass@a,b:26380/main/2', 'x'), {
    ...PLAIN,
    topology: 'sentinel',
    hosts: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 26_380 },
    ],
    masterName: 'main',
    password: 'pass',
    database: 2,
  });
  t.deepEqual(parseRedisAddress('rediss+cluster://a:7000,b:7001', 'x'), {
    ...PLAIN,
    topology: 'cluster',
    hosts: [
      { host: 'a', port: 7000 },
      { host: 'b', port: 7001 },
    ],
    tls: true,
  });
});

test('reads how to log in at sentinels, which have users of their own', (t) => {
  const read = (query: string) => parseRedisAddress(`redis+sentinel://a/main?${query}`, 'x').sentinelLogin;
  t.deepEqual(read('sentinel-password=p%26ss'), { user: undefined, password: 'p&ss' });
  t.deepEqual(read('sentinel-user=watcher&sentinel-password=pass'), { user: 'watcher', password: 'pass' });
});

for (const wrong of [
  'store.example:6379',
  'http://store.example',
  'redis://a,b',
  'redis://a/x',
  'redis+sentinel://a',
  'redis+cluster://a/1',
  'redis://a:99999',
  'redis://user:50%@a',
  'redis://a?sentinel-password=pass',
  'redis+sentinel://a/main?sentinel-user=pass',
  'redis+sentinel://a/main?password=pass',
]) {
  test(`refuses ${wrong} without repeating it`, (t) => {
    const error = t.throws(() => parseRedisAddress(wrong, '--store'), { code: 'ERR_CONFIG_OPTION' });
    t.true(error?.message.startsWith('--store: '));
  });
}
