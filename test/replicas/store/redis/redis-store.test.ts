import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { parseRedisAddress } from '../../../../src/cli/parse/store-address.ts';
import { toBridgeError } from '../../../../src/errors.ts';
import { ClusterKey } from '../../../../src/replicas/store/cluster-key.ts';
import { connectRedisStore } from '../../../../src/replicas/store/redis/redis-store.ts';
import type { Store } from '../../../../src/replicas/store/store.ts';
import { type FaultProxy, startFaultProxy } from '../../../support/fault-proxy.ts';
import { type RedisServer, startRedis, WHY_NO_REDIS } from '../../../support/redis-server.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { testStoreContract } from '../store-contract.ts';

/** Skipped with the reason where Redis is not installed. */
const test = (WHY_NO_REDIS === undefined ? anyTest : anyTest.skip) as TestFn;
const WHY = WHY_NO_REDIS === undefined ? '' : ` (${WHY_NO_REDIS})`;
const PREFIX = 'portage-test:';
const KEYS = [randomBytes(24).toString('base64'), randomBytes(24).toString('base64')] as const;
const NO_FILES = { ca: undefined, cert: undefined, key: undefined };
const log = pino({ level: 'silent' });

let redis: RedisServer | undefined;
const opened: Store[] = [];

anyTest.before(async () => {
  if (WHY_NO_REDIS === undefined) redis = await startRedis();
});
anyTest.after.always(async () => {
  for (const store of opened) await store.close();
  await redis?.stop();
});

async function open(url: URL | undefined = redis?.url, keys: readonly [string, ...string[]] = KEYS): Promise<Store> {
  const address = parseRedisAddress(String(url), 'test');
  const key = new ClusterKey(keys);
  const store = await connectRedisStore({ address, tls: NO_FILES, prefix: PREFIX, key, log });
  opened.push(store);
  return store;
}

testStoreContract(test, `on Redis${WHY}`, () => open());

test(`a log lasts longer without new entries, and one that is not there stays away${WHY}`, async (t) => {
  const own = await startRedis();
  const { logs } = await open(own.url);
  const client = new Redis(String(own.url));
  try {
    await logs.append('log', [Buffer.from('entry')], { maxEntries: 10, ttlMs: 10_000 });
    const [key = ''] = await client.keys('*');
    for (const name of ['log', 'other']) await logs.append(name, [], { maxEntries: 10, ttlMs: 60_000 });
    t.true((await client.pttl(key)) > 10_000);
    t.deepEqual(await client.keys('*'), [key]);
  } finally {
    client.disconnect();
    await own.stop();
  }
});

test(`nothing readable is stored, and nothing for ever${WHY}`, async (t) => {
  const own = await startRedis();
  const store = await open(own.url);
  const secret = 'alice at the bank';
  await store.leases.renew('holder-1', 1);
  await store.leases.release('holder-2');
  const next = { owner: 'holder-1', token: 1, value: secret };
  await store.records.put(secret, { expected: 'absent', next, ttlMs: 10_000 });
  await store.logs.append(secret, [Buffer.from(secret)], { maxEntries: 10, ttlMs: 10_000 });
  const client = new Redis(String(own.url));
  try {
    const keys = await client.keys('*');
    t.true(keys.length >= 4);
    for (const key of keys) {
      t.true(key.startsWith(PREFIX));
      t.false(key.includes('alice'));
      t.true((await client.pttl(key)) > 0, key);
      const dumped = await client.dumpBuffer(key);
      t.false(dumped?.includes('alice') ?? true);
    }
  } finally {
    client.disconnect();
    await own.stop();
  }
});

test(`a key is exchanged while replicas run: the first seals, all open${WHY}`, async (t) => {
  const [one, other] = KEYS;
  const stores = { before: await open(redis?.url, [one]), during: await open(redis?.url, [other, one]) };
  const after = await open(redis?.url, [other]);
  const next = { owner: 'a', token: 1, value: 'kept' };
  await stores.before.records.put('rotated', { expected: 'absent', next, ttlMs: 60_000 });
  t.is((await stores.during.records.read('rotated'))?.value, 'kept');
  await t.throwsAsync(after.records.read('rotated'), { code: 'ERR_STORE_UNREADABLE' });
  await stores.during.records.put('rotated', { expected: next, next, ttlMs: 60_000 });
  t.is((await after.records.read('rotated'))?.value, 'kept');
});

async function withProxy(run: (store: Store, proxy: FaultProxy) => Promise<void>): Promise<void> {
  const proxy = await startFaultProxy(redis?.url ?? new URL('redis://127.0.0.1'));
  try {
    await run(await open(proxy.through(redis?.url ?? new URL('redis://127.0.0.1'))), proxy);
  } finally {
    await proxy.close();
  }
}

test(`a store that says nothing is given up within seconds, and found again${WHY}`, async (t) => {
  await withProxy(async (store, proxy) => {
    proxy.fault = { kind: 'silence' };
    const startedMs = Date.now();
    await t.throwsAsync(store.leases.read('holder'), { code: 'ERR_STORE_UNAVAILABLE' });
    t.true(Date.now() - startedMs < 4000);
    t.is(store.status.state, 'unavailable');
    proxy.fault = { kind: 'none' };
    await waitFor(() => store.leases.renew('holder-of-silence', 1).catch(() => false), { message: 'the store' });
    t.is(store.status.state, 'connected');
  });
});

test(`a store that is gone is told at once, however many ask${WHY}`, async (t) => {
  await withProxy(async (store, proxy) => {
    proxy.fault = { kind: 'refuse' };
    await proxy.reset();
    await waitFor(() => store.status.state === 'unavailable');
    const startedMs = Date.now();
    const asked = Array.from({ length: 1000 }, () => store.records.read('any').catch((error) => error.code));
    t.deepEqual([...new Set(await Promise.all(asked))], ['ERR_STORE_UNAVAILABLE']);
    t.true(Date.now() - startedMs < 4000);
    proxy.fault = { kind: 'none' };
    await waitFor(() =>
      store.records.read('any').then(
        () => true,
        () => false,
      ),
    );
  });
});

test(`a store that is full says so to whoever writes, and goes on reading${WHY}`, async (t) => {
  const full = await startRedis(['--maxmemory', '3mb', '--maxmemory-policy', 'noeviction']);
  try {
    const store = await open(full.url);
    const write = (index: number) =>
      store.records.put(`large ${index}`, {
        expected: 'absent',
        next: { owner: 'a', token: 1, value: 'x'.repeat(100_000) },
        ttlMs: 60_000,
      });
    await t.throwsAsync(
      async () => {
        for (let index = 0; index < 100; index += 1) await write(index);
      },
      { code: 'ERR_STORE_UNAVAILABLE', message: /OOM/ },
    );
    t.is((await store.records.read('large 0'))?.token, 1);
  } finally {
    await full.stop();
  }
});

test(`a store that starts anew is used again${WHY}`, async (t) => {
  const own = await startRedis();
  try {
    const store = await open(own.url);
    await store.leases.renew('holder', 1);
    await own.restart();
    await waitFor(() => store.leases.renew('holder', 2).catch(() => false), {
      message: 'the store to be found again',
    });
    t.deepEqual(await store.leases.read('holder'), { kind: 'sign', sign: '2.2' });
  } finally {
    await own.stop();
  }
});

test('where no store is, the start says so', async (t) => {
  await t.throwsAsync(open(new URL('redis://127.0.0.1:1')), {
    code: 'ERR_STORE_UNAVAILABLE',
    message: /Redis at 127\.0\.0\.1:1 .*ECONNREFUSED.*--store/,
  });
});

/** Answers whoever connects as a Redis does, and commands of the store with `reply`. */
async function startWrongRedis(t: ExecutionContext, reply: string): Promise<URL> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket
      .on('error', () => undefined)
      .on('data', (chunk) => {
        for (const command of chunk
          .toString('latin1')
          .split(/^\*\d+\r\n/m)
          .slice(1)) {
          const name = command.split('\r\n')[1]?.toLowerCase();
          if (name === 'info') socket.write('$9\r\nloading:0\r\n');
          else socket.write(name === 'client' || name === 'select' ? '+OK\r\n' : reply);
        }
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return new URL(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** What each reply is right for. */
const FITTING: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  'a text': [['look', 'fits: sign']],
  'a number': [['renew', 'fits: since']],
  'an empty list': [['log', 'fits: 0 entries']],
};

const WRONG_REPLIES = {
  'a text': '$5\r\nhello\r\n',
  'a number': ':42\r\n',
  nothing: '$-1\r\n',
  'an empty list': '*0\r\n',
  'a list of lists': '*3\r\n*1\r\n:1\r\n*0\r\n*2\r\n$1\r\nx\r\n:1\r\n',
};

for (const [what, reply] of Object.entries(WRONG_REPLIES)) {
  test(`whatever asks a store that answers ${what} gets what fits, or an error with a name`, async (t) => {
    const { leases, records, logs } = await open(await startWrongRedis(t, reply));
    const next = { owner: 'a', token: 1, value: 'kept' };
    const asked = {
      renew: leases.renew('holder', 1).then(({ kind }) => kind === 'dead' || 'since'),
      look: leases.read('holder').then(({ kind }) => kind),
      condemn: leases.condemn('holder', { kind: 'sign', sign: '1.1' }),
      read: records.read('name').then(String),
      put: records.put('name', { expected: 'absent', next, ttlMs: 1000 }).then(String),
      log: logs.read('name').then(({ length }) => `${length} entries`),
    };
    const failures = await Promise.all(
      Object.entries(asked).map(async ([name, answer]) => {
        const failure = await answer.then(
          (fits) => `fits: ${fits}`,
          (thrown) => toBridgeError(thrown).code,
        );
        return [name, failure] as const;
      }),
    );
    const fitting = failures.filter(([, failure]) => failure !== 'ERR_STORE_UNREADABLE');
    t.deepEqual(fitting, FITTING[what] ?? []);
  });
}
