import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { pino } from 'pino';
import { createSystemDeps } from '../../../src/cli/system-deps.ts';
import { ClusterLimits, refusalOf } from '../../../src/replicas/limits/cluster-limits.ts';
import { Cluster } from '../../../src/replicas/ownership/cluster.ts';
import { ClusterKey } from '../../../src/replicas/store/cluster-key.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const LEASE_MS = 6000;
/** As documented. */
const MAX_LIMITS = 10_000;

async function join(clock: FakeClock, store = new MemoryStore()) {
  const deps = { ...createSystemDeps(pino({ level: 'silent' })), clock, wallClock: () => clock.now() };
  const key = new ClusterKey(['k'.repeat(32)]);
  const address = 'http://10.0.0.1:8000';
  const options = { store, key, address, leaseMs: LEASE_MS, wallClock: deps.wallClock, deps };
  const cluster = await Cluster.join(options);
  await clock.advanceInSteps(2 * LEASE_MS, LEASE_MS / 6);
  await cluster.members.settled();
  return { cluster, limits: new ClusterLimits(cluster, clock) };
}

test('each caller has a limit of its own', async (t) => {
  const { limits } = await join(new FakeClock());
  const taken = new Map<string, number>();
  const callers = limits.perCaller('sessions of a server', 1, (caller) => taken.get(caller) ?? 0);
  for (const caller of ['alice', 'bob']) {
    await callers.reserve(caller);
    t.is(callers.refusalFor(caller), undefined);
    taken.set(caller, 1);
    await callers.reserve(caller);
    t.is(callers.refusalFor(caller), 'full');
  }
});

test('what nobody needs anymore is given back and forgotten, in the store, too', async (t) => {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const { limits } = await join(clock, store);
  let taken = 0;
  const { limit, close } = limits.of('sessions', 10, () => taken);
  await limit?.reserve();
  taken = 1;
  t.is(limit?.held, 1);
  taken = 0;
  await clock.advanceInSteps(2 * LEASE_MS, LEASE_MS / 6);
  t.is(limit?.held, 0);
  close();
  await clock.advanceInSteps(LEASE_MS, LEASE_MS / 6);
  t.not(limits.of('sessions', 10, () => 0).limit, limit);
});

test('whoever is refused without having asked for more finds it at the next try', async (t) => {
  const { limits } = await join(new FakeClock());
  const { limit } = limits.of('sessions', 10, () => 0);
  t.is(refusalOf(limit), 'full');
  await setImmediate();
  t.is(refusalOf(limit), undefined);
});

test('more limits than can be kept are refused', async (t) => {
  const { limits } = await join(new FakeClock());
  for (let index = 0; index < MAX_LIMITS; index += 1) limits.of(`limit ${index}`, 1, () => 1);
  const { limit } = limits.of('one more', 1, () => 0);
  const refusal = refusalOf(limit);
  t.is(refusal === 'full' ? refusal : refusal?.code, 'ERR_SESSION_BUSY');
});
