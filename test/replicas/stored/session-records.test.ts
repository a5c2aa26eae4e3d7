import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { BridgeError } from '../../../src/errors.ts';
import type { SessionState } from '../../../src/relay/sessions/session-state.ts';
import { Cluster } from '../../../src/replicas/ownership/cluster.ts';
import { ClusterKey } from '../../../src/replicas/store/cluster-key.ts';
import { SessionRecords } from '../../../src/replicas/stored/session-records.ts';
import { SessionReplay } from '../../../src/replicas/stored/session-replay.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const log = pino({ level: 'silent' });
const settled = () => new Promise((resolve) => setImmediate(resolve));

const TTL_MS = 60_000;
const LEASE_MS = 15_000;

/** A replica that keeps sessions in a store. */
async function startReplica(t: ExecutionContext) {
  const store = new MemoryStore();
  const clock = new FakeClock();
  let ids = 0;
  const deps = { log, clock, wallClock: Date.now, randomId: () => `id-${ids++}` };
  const key = new ClusterKey(['k'.repeat(40)]);
  const cluster = await Cluster.join({
    ...{ store, key, address: 'http://replica', leaseMs: LEASE_MS, deps },
    wallClock: clock.now.bind(clock),
  });
  const records = new SessionRecords({ cluster, server: 'server', ttlMs: TTL_MS, clock, log });
  t.teardown(async () => {
    records.close();
    await cluster.leave();
  });
  const begin = (id: string): SessionState => {
    const state = records.begin(id, 'alice');
    state.offer = { protocolVersion: '2025-11-25', capabilities: {} };
    state.sessionId = 'at-the-server';
    return state;
  };
  return { store, clock, records, begin };
}

test('a session whose first record was written without anybody being told is written again when it changes', async (t) => {
  const { store, begin } = await startReplica(t);
  const { put } = store.records;
  store.records.put = async (...args) => {
    await put(...args);
    throw new BridgeError('ERR_STORE_UNAVAILABLE', 'the reply is lost');
  };
  const state = begin('session');
  await settled();
  store.records.put = put;
  const before = (await store.records.read('session'))?.value;
  t.truthy(before);
  state.isInitialized = true;
  await settled();
  t.not((await store.records.read('session'))?.value, before);
});

test('what streams have said is stored again with its session when the store has lost both', async (t) => {
  const { store, clock, records, begin } = await startReplica(t);
  const names = ['one', 'two', 'three'];
  for (const name of names) {
    begin(name);
    const replay = records.replayOf(name);
    const run = { stream: 0, sequence: 1, count: 1, bytes: Buffer.from(name) };
    replay?.add(run);
    if (replay !== undefined)
      replay.kept = () => ({ runs: [run], waiting: [Buffer.from('waiting')], unended: new Map() });
  }
  await settled();
  store.clear();
  clock.advance(LEASE_MS / 3);
  await settled();
  for (const name of names) {
    t.truthy(await store.records.read(name), name);
    const { runs, waiting } = await SessionReplay.read(store.logs, name);
    t.deepEqual([...runs.map(({ bytes }) => bytes), ...waiting].map(String), [name, 'waiting']);
  }
});

test('what streams have said lasts as long as the record of their session', async (t) => {
  const { store, clock, records, begin } = await startReplica(t);
  begin('session');
  records.replayOf('session')?.add({ stream: 0, sequence: 1, count: 1, bytes: Buffer.from('said') });
  await settled();
  const renewed: string[] = [];
  const { append } = store.logs;
  store.logs.append = (name, entries, limits) => {
    renewed.push(`${name}: ${entries.length} for ${limits.ttlMs}`);
    return append(name, entries, limits);
  };
  for (let passedMs = 0; passedMs < TTL_MS / 3; passedMs += LEASE_MS / 6) {
    clock.advance(LEASE_MS / 6);
    await settled();
  }
  t.deepEqual(renewed, [`session: 0 for ${TTL_MS}`]);
});
