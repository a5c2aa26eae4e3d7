import test from 'ava';
import { pino } from 'pino';
import { Cluster } from '../../src/cluster/cluster.ts';
import { SessionRecords } from '../../src/cluster/session-records.ts';
import { BridgeError } from '../../src/errors.ts';
import { ClusterKey } from '../../src/store/cluster-key.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryStore } from '../support/memory-store.ts';

const log = pino({ level: 'silent' });
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a session whose first record was written without anybody being told is written again when it changes', async (t) => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  let ids = 0;
  const deps = { log, clock, wallClock: Date.now, randomId: () => `id-${ids++}` };
  const key = new ClusterKey('k'.repeat(40), 'test');
  const cluster = await Cluster.join({
    ...{ store, key, address: 'http://replica', leaseMs: 15_000, deps },
    wallClock: clock.now.bind(clock),
  });
  const records = new SessionRecords({ cluster, server: 'server', ttlMs: 60_000, clock, log });
  t.teardown(async () => {
    records.close();
    await cluster.leave();
  });
  const { put } = store.records;
  store.records.put = async (...args) => {
    await put(...args);
    throw new BridgeError('ERR_STORE_UNAVAILABLE', 'the reply is lost');
  };
  const state = records.begin('session', 'alice');
  state.offer = { protocolVersion: '2025-11-25', capabilities: {} };
  state.sessionId = 'at-the-server';
  await settled();
  store.records.put = put;
  const before = (await store.records.read('session'))?.value;
  t.truthy(before);
  state.isInitialized = true;
  await settled();
  t.not((await store.records.read('session'))?.value, before);
});
