import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { pino } from 'pino';
import { parseRedisAddress } from '../../../../src/cli/parse/store-address.ts';
import type { StoreTls } from '../../../../src/config/cluster.ts';
import { ClusterKey } from '../../../../src/replicas/store/cluster-key.ts';
import { connectRedisStore } from '../../../../src/replicas/store/redis/redis-store.ts';
import type { Store } from '../../../../src/replicas/store/store.ts';
import { WHY_NO_REDIS } from '../../../support/redis-server.ts';
import {
  type ClusterBed,
  type SentinelBed,
  startClusterBed,
  startSentinelBed,
  startTlsRedis,
} from '../../../support/redis-topologies.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { testStoreContract } from '../store-contract.ts';

/** Skipped with the reason where Redis is not installed. */
const test = (WHY_NO_REDIS === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_REDIS === undefined ? '' : ` (${WHY_NO_REDIS})`;
const PREFIX = 'portage-test:';
const KEY = new ClusterKey([randomBytes(24).toString('base64')]);
const NO_FILES: StoreTls = { ca: undefined, cert: undefined, key: undefined };
/** A command takes 2 s at most; a machine that others use takes longer to say so. */
const BOUND_MS = 5000;

const pemOf = (name: string): string =>
  readFileSync(new URL(`../../../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
const TRUST: StoreTls = { ...NO_FILES, ca: pemOf('ca') };
const SHOWN: StoreTls = { ca: pemOf('ca'), cert: pemOf('client'), key: pemOf('client-key') };

const opened: Store[] = [];
let sentinels: SentinelBed | undefined;
let cluster: ClusterBed | undefined;

anyTest.before(async () => {
  if (WHY_NO_REDIS === undefined) [sentinels, cluster] = await Promise.all([startSentinelBed(), startClusterBed()]);
});
anyTest.after.always(async () => {
  for (const store of opened) await store.close();
  await Promise.all([sentinels?.stop(), cluster?.stop()]);
});

async function open(url = '', tls = NO_FILES): Promise<Store> {
  const log = pino({ level: 'silent' });
  const store = await connectRedisStore({ address: parseRedisAddress(url, 'x'), tls, prefix: PREFIX, key: KEY, log });
  opened.push(store);
  return store;
}

let sign = 0;

/** Asks until there is an answer; each attempt ends in time, with one or with the error that says why not. */
async function untilAnswered(store: Store, holders: readonly string[]): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const holder of holders) {
    await waitFor(
      async () => {
        const startedMs = Date.now();
        sign += 1;
        const outcome = await store.leases.renew(holder, sign).catch((error) => error.code);
        const tookMs = Date.now() - startedMs;
        if (tookMs > BOUND_MS) throw new Error(`an attempt took ${tookMs} ms`);
        if (typeof outcome === 'string') failures.push(outcome);
        return typeof outcome !== 'string';
      },
      { message: 'the store to answer again' },
    );
  }
  return failures;
}

/** Some of them are at each node of a cluster. */
const HOLDERS = Array.from({ length: 12 }, (_, index) => `holder ${index}`);

testStoreContract(test, `behind sentinels${WHY}`, () => open(sentinels?.url));
testStoreContract(test, `on a cluster${WHY}`, () => open(cluster?.url));

test(`when the master dies the store goes on at the one that the sentinels choose${WHY}`, async (t) => {
  const store = await open(sentinels?.url);
  const before = await sentinels?.master();
  await untilAnswered(store, HOLDERS);
  before?.kill('SIGKILL');
  const failures = await untilAnswered(store, HOLDERS);
  t.deepEqual([...new Set(failures)], ['ERR_STORE_UNAVAILABLE']);
  t.not((await sentinels?.master())?.port, before?.port);
  await before?.restart();
});

test(`a master that hangs is left, and is not written to when it comes back${WHY}`, async (t) => {
  const store = await open(sentinels?.url);
  // The one that was restarted has to follow before it can take over.
  const before = await waitFor(() => sentinels?.ready());
  before.kill('SIGSTOP');
  try {
    t.deepEqual([...new Set(await untilAnswered(store, HOLDERS))], ['ERR_STORE_UNAVAILABLE']);
    t.not((await sentinels?.master())?.port, before.port);
  } finally {
    before.kill('SIGCONT');
  }
  await untilAnswered(store, HOLDERS);
  t.is(store.status.state, 'connected');
});

test(`when a node of a cluster is gone each command ends in time, and all work when it is back${WHY}`, async (t) => {
  const store = await open(cluster?.url);
  await untilAnswered(store, HOLDERS);
  const node = cluster?.nodes[2];
  node?.kill('SIGKILL');
  const startedMs = Date.now();
  const outcomes = await Promise.all(HOLDERS.map((holder) => store.leases.renew(holder, 1).catch(({ code }) => code)));
  t.true(Date.now() - startedMs < BOUND_MS);
  t.true(outcomes.includes('ERR_STORE_UNAVAILABLE'));
  await node?.restart();
  await untilAnswered(store, HOLDERS);
  t.is(store.status.state, 'connected');
});

test(`a node of a cluster that hangs makes no command wait for longer${WHY}`, async (t) => {
  const store = await open(cluster?.url);
  await untilAnswered(store, HOLDERS);
  const node = cluster?.nodes[1];
  node?.kill('SIGSTOP');
  try {
    const startedMs = Date.now();
    const outcomes = await Promise.all(
      HOLDERS.map((holder) => store.leases.renew(holder, 1).catch(({ code }) => code)),
    );
    t.true(Date.now() - startedMs < BOUND_MS);
    t.true(outcomes.includes('ERR_STORE_UNAVAILABLE'));
  } finally {
    node?.kill('SIGCONT');
  }
  await untilAnswered(store, HOLDERS);
  t.is(store.status.state, 'connected');
});

test(`over TLS a store is trusted for its authority, and the reason is told where it is not${WHY}`, async (t) => {
  const redis = await startTlsRedis('no');
  t.teardown(() => redis.stop());
  const url = `rediss://localhost:${redis.port}`;
  const store = await open(url, TRUST);
  t.deepEqual(await store.leases.renew('holder', 1), { kind: 'renewed', since: 1 });
  await t.throwsAsync(open(url), { code: 'ERR_STORE_UNAVAILABLE', message: /UNABLE_TO_VERIFY|SELF_SIGNED/ });
});

test(`a store that wants a certificate of its clients gets one${WHY}`, async (t) => {
  const redis = await startTlsRedis('yes');
  t.teardown(() => redis.stop());
  const url = `rediss://localhost:${redis.port}`;
  const store = await open(url, SHOWN);
  t.deepEqual(await store.leases.renew('holder', 1), { kind: 'renewed', since: 1 });
  await t.throwsAsync(open(url, TRUST), { code: 'ERR_STORE_UNAVAILABLE' });
});

/** What docs/reference/scaling.md says is enough. */
const RIGHTS = '-@all +eval +evalsha +get +set +del +hget +hset +hmget +pexpire +xadd +xrange +info +client';

/** A user that may do what it has to. */
const USER = ['--user', 'portage', 'on', '>s%cret', `~${PREFIX}*`, 'resetchannels', ...RIGHTS.split(' ')];
const LOGIN = 'portage:s%25cret@';

/** Whatever a store does. */
async function useAll(t: ExecutionContext, store: Store): Promise<void> {
  const next = { owner: 'a', token: 1, value: 'kept' };
  t.true(await store.records.put('name', { expected: 'absent', next, ttlMs: 60_000 }));
  t.is((await store.records.read('name'))?.value, 'kept');
  await store.records.remove('name', next);
  await store.logs.append('log', [Buffer.from('said')], { maxEntries: 10, ttlMs: 60_000 });
  t.deepEqual(await store.logs.read('log'), [Buffer.from('said')]);
  await store.logs.remove('log');
  await store.leases.release('holder');
  t.is(await store.leases.condemn('holder', await store.leases.read('holder')), 'dead');
}

test(`a user needs rights to few commands, and to keys of its prefix${WHY}`, async (t) => {
  const redis = await startTlsRedis('no', [...USER, '--user', 'default', 'off']);
  t.teardown(() => redis.stop());
  await useAll(t, await open(`rediss://${LOGIN}localhost:${redis.port}`, TRUST));
  const refused = await t.throwsAsync(open(`rediss://portage:guessed@localhost:${redis.port}`, TRUST), {
    code: 'ERR_STORE_UNAVAILABLE',
    message: /WRONGPASS/,
  });
  t.false(refused?.message.includes('guessed'));
});

async function useWithLogin(t: ExecutionContext, starting: Promise<SentinelBed | ClusterBed>): Promise<Store> {
  const bed = await starting;
  t.teardown(() => bed.stop());
  const url = bed.url.replace('://', `://${LOGIN}`);
  const untrusted = t.throwsAsync(open(url), { code: 'ERR_STORE_UNAVAILABLE' });
  const store = await open(url, TRUST);
  await useAll(t, store);
  await untrusted;
  return store;
}

test(`the same user will do over TLS behind sentinels; on a cluster it also has to ask where keys are${WHY}`, async (t) => {
  const [, onCluster] = await Promise.all([
    useWithLogin(t, startSentinelBed({ tls: 'on', further: USER })),
    useWithLogin(t, startClusterBed({ tls: 'on', further: [...USER, '+cluster'] })),
  ]);
  // Some of them are at each node.
  t.deepEqual(await untilAnswered(onCluster, HOLDERS), []);
});
