import test from 'ava';
import { pino } from 'pino';
import type { Usage } from '../../../src/observe/usage/usage.ts';
import type { RecordStore } from '../../../src/replicas/store/store.ts';
import { SharedUsage, WRITE_EVERY_MS } from '../../../src/replicas/stored/shared-usage.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { client, runCall, SERVER_2025 } from '../../support/observed.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = pino({ level: 'silent' });
const NOON_MS = Date.UTC(2026, 0, 2, 12);
let runs = 0;

function start(records: RecordStore, clock = new FakeClock()) {
  const deps = { clock, wallClock: () => NOON_MS, randomId: () => `run ${runs++}`, log };
  return new SharedUsage({ records, deps });
}

const sum = ({ rows }: Usage, name: 'calls' | 'sessions' | 'carried'): number =>
  rows.flatMap(({ days }) => days).reduce((total, counts) => total + counts[name], 0);

test('what several replicas have counted is added up, and each thing once', async (t) => {
  const { records } = new MemoryStore();
  const [one, other] = [start(records), start(records)];
  for (let call = 0; call < 3; call += 1) runCall(one.table);
  for (let call = 0; call < 4; call += 1) runCall(other.table);
  await Promise.all([one.flush(), other.flush()]);
  await one.close();
  runCall(other.table);
  t.is(sum(await other.read(), 'calls'), 8);
  t.is(sum(await other.read(), 'calls'), 8);
});

test('sessions that stay open are carried into a day once', async (t) => {
  const { records } = new MemoryStore();
  const usage = start(records);
  usage.table.connected(client(), SERVER_2025);
  for (let write = 0; write < 3; write += 1) await usage.flush();
  const counted = await usage.read();
  t.is(sum(counted, 'sessions') + sum(counted, 'carried'), 1);
});

test('a write whose reply was lost is not added twice', async (t) => {
  const { records } = new MemoryStore();
  let isReplyLost = true;
  const usage = start({
    ...records,
    put: async (...args) => {
      const isPut = await records.put(...args);
      if (isReplyLost) throw new Error('timed out');
      return isPut;
    },
  });
  runCall(usage.table);
  await t.throwsAsync(usage.flush());
  runCall(usage.table);
  isReplyLost = false;
  t.is(sum(await usage.read(), 'calls'), 2);
});

test('it is written once a period', async (t) => {
  const { records } = new MemoryStore();
  let writes = 0;
  const counted: RecordStore = {
    ...records,
    put: (...args) => {
      writes += 1;
      return records.put(...args);
    },
  };
  const clock = new FakeClock();
  const usage = start(counted, clock);
  for (let call = 0; call < 100; call += 1) runCall(usage.table);
  t.is(writes, 0);
  for (let period = 1; period <= 3; period += 1) {
    clock.advance(WRITE_EVERY_MS);
    await waitFor(() => writes === period, { message: 'a write of this period' });
  }
  t.is(sum(await start(records).read(), 'calls'), 100);
  await usage.close();
  t.is(clock.pendingTimers, 0);
});
