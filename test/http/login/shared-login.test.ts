import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/cli/system-deps.ts';
import type { LoginConfig } from '../../../src/config/remote.ts';
import { BridgeError } from '../../../src/errors.ts';
import { SharedLogin } from '../../../src/http/login/login-storage.ts';
import { ExclusiveValue } from '../../../src/replicas/stored/exclusive-value.ts';
import { startBoundWorld } from '../../support/bound-world.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { createUser, type LoginSettings, type User } from './logged-in.ts';
import { NO_OPTIONS } from './login-config.ts';

/** The login of one replica. */
async function createReplica(
  t: ExecutionContext,
  server: URL,
  store: MemoryStore,
  { stored = NO_OPTIONS.stored, ...settings }: LoginSettings & Partial<Pick<LoginConfig, 'stored'>> = {},
): Promise<User> {
  const peers = { judge: async () => 'alive' as const };
  const self = { id: `replica ${Math.random()}`, address: 'http://replica' };
  const cluster = { store, self, peers, isHeld: true };
  const config = { ...NO_OPTIONS, stored, stateDirectory: undefined };
  const open = (name: string) => new ExclusiveValue({ cluster, name, clock: systemClock });
  return createUser(t, server, { ...settings, storage: await SharedLogin.open(server, config, open) });
}

test('a login made at one replica serves all of them', async (t) => {
  const world = await startLoginWorld(t);
  const store = new MemoryStore();
  const waiting = await createReplica(t, world.url, store);
  t.is((await (await createReplica(t, world.url, store)).call()).body, 'served');
  t.is((await waiting.call()).body, 'served');
  t.is((await (await createReplica(t, world.url, store)).call()).body, 'served');
  t.is(world.count('/authorize'), 1);
  t.is(world.count('/register'), 1);
});

test('of replicas that need a login at the same time one sends its user to it', async (t) => {
  const world = await startLoginWorld(t);
  const store = new MemoryStore();
  const replicas = await Promise.all([0, 1, 2].map(() => createReplica(t, world.url, store)));
  for (const call of await Promise.all(replicas.map((replica) => replica.call()))) t.is(call.body, 'served');
  t.is(world.count('/authorize'), 1);
});

test('of replicas whose token is not taken anymore one refreshes it, once, each time', async (t) => {
  const world = await startLoginWorld(t);
  const store = new MemoryStore();
  const replicas = await Promise.all([0, 1, 2].map(() => createReplica(t, world.url, store)));
  for (const replica of replicas) await replica.call();
  for (const round of [2, 3, 4]) {
    world.tokens.clear();
    for (const call of await Promise.all(replicas.map((replica) => replica.call()))) t.is(call.body, 'served');
    t.is(world.count('/token'), round);
    t.is(world.latest('/token').parameters.get('refresh_token'), `refresh-${round - 1}`);
  }
  t.is(world.count('/authorize'), 1);
});

test('while the store does not answer no token is spent, and the calls that need one are told at once', async (t) => {
  const world = await startLoginWorld(t);
  const store = new MemoryStore();
  const replica = await createReplica(t, world.url, store);
  await replica.call();
  world.tokens.clear();
  const { read } = store.records;
  store.records.read = () => Promise.reject(new BridgeError('ERR_STORE_UNAVAILABLE', 'the store is gone'));
  t.is((await replica.call()).failure?.code, 'ERR_STORE_UNAVAILABLE');
  t.is(world.count('/token'), 1);
  store.records.read = read;
  t.is((await replica.call()).body, 'served');
  t.is(world.count('/token'), 2);
});

test('replicas that are to log in anew leave the login of the others alone, and do it once among them', async (t) => {
  const world = await startLoginWorld(t);
  const store = new MemoryStore();
  const running = await createReplica(t, world.url, store);
  await running.call();
  const anew = await Promise.all([0, 1, 2].map(() => createReplica(t, world.url, store, { stored: 'forget' })));
  t.is((await running.call()).body, 'served');
  t.is(world.shown.at(-1), 'Bearer access-1');
  for (const call of await Promise.all(anew.map((replica) => replica.call()))) t.is(call.body, 'served');
  t.is(world.count('/authorize'), 2);
  // The new one is for all of them from now on.
  world.tokens.delete('access-1');
  t.is((await running.call()).body, 'served');
  t.is(world.shown.at(-1), 'Bearer access-2');
  t.is(world.count('/authorize'), 2);
});

test('replicas share the key that their tokens are bound to', async (t) => {
  const { world, keys, faults } = await startBoundWorld(t);
  const store = new MemoryStore();
  const replicas = await Promise.all([0, 1].map(() => createReplica(t, world.url, store)));
  for (const round of [1, 2, 3]) {
    for (const replica of replicas) t.is((await replica.call()).body, 'served');
    t.is(world.count('/token'), round);
    world.tokens.clear();
  }
  t.is(keys.size, 1);
  t.is(world.count('/authorize'), 1);
  t.deepEqual(faults, []);
});
