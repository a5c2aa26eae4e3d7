import test from 'ava';
import { pino } from 'pino';
import type { StoredOutcome } from '../../../src/relay/shared-state.ts';
import { MAX_OUTCOME_BYTES, MAX_STORED_BYTES, StoredOutcomes } from '../../../src/replicas/stored/stored-outcomes.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const TTL_MS = 60_000;
const log = pino({ level: 'silent' });

function createReplicas() {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const create = (server = 'a') =>
    new StoredOutcomes({ cluster: { store, isHeld: true, onLost: () => () => {} }, server, clock, log });
  return { clock, store, one: create(), other: create(), elsewhere: create('b') };
}

function outcomeOf(id: string, bytes: number): StoredOutcome {
  return { id, principal: 'alice', digest: 'd', state: { kind: 'over', answer: Buffer.alloc(bytes, 'x') } };
}

const written = () => new Promise((resolve) => setImmediate(resolve));

test('another replica finds the latest of an outcome, for its caller at its server alone', async (t) => {
  const { one, other, elsewhere } = createReplicas();
  one.keep({ ...outcomeOf('id', 0), state: { kind: 'begun' } }, TTL_MS);
  one.keep(outcomeOf('id', 3), TTL_MS);
  await written();
  t.deepEqual(await other.find('id', 'alice'), outcomeOf('id', 3));
  t.is(await other.find('id', 'bob'), undefined);
  t.is(await elsewhere.find('id', 'alice'), undefined);
  t.is(await other.find('another', 'alice'), undefined);
});

test('another replica finds what it needs to go on with a call that waits, and whoever stored it learns that it can', async (t) => {
  const { one, other } = createReplicas();
  const waiting: StoredOutcome = { ...outcomeOf('id', 0), state: { kind: 'waiting', call: 'so far' } };
  t.true(await one.keep(waiting, TTL_MS));
  t.deepEqual(await other.find('id', 'alice'), waiting);
  t.false(await one.keep(outcomeOf('huge', MAX_OUTCOME_BYTES), TTL_MS));
});

test('nobody waits for long for a store that does not answer', async (t) => {
  const { clock, store, one } = createReplicas();
  store.records.put = () => new Promise(() => {});
  const kept = one.keep(outcomeOf('id', 3), TTL_MS);
  clock.advance(1000);
  t.false(await kept);
});

test('a store that fails stores nothing', async (t) => {
  const { store, one } = createReplicas();
  store.records.put = () => Promise.reject(new Error('gone'));
  t.false(await one.keep(outcomeOf('id', 3), TTL_MS));
});

test('what is too large is not stored, and when all together is, further ones are not until others have expired', async (t) => {
  const { clock, one, other } = createReplicas();
  one.keep(outcomeOf('huge', MAX_OUTCOME_BYTES), TTL_MS);
  const large = MAX_OUTCOME_BYTES / 2;
  for (let index = 0; index < 200; index += 1) one.keep(outcomeOf(`large ${index}`, large), TTL_MS);
  await written();
  t.true(one.bytes <= MAX_STORED_BYTES);
  t.truthy(await other.find('large 0', 'alice'));
  for (const id of ['huge', 'large 199']) t.is(await other.find(id, 'alice'), undefined, id);
  clock.advance(TTL_MS + 1);
  one.keep(outcomeOf('later', large), TTL_MS);
  await written();
  t.truthy(await other.find('later', 'alice'));
  t.true(one.bytes < MAX_OUTCOME_BYTES);
});

test('what takes the place of something stored is stored, however much is stored already', async (t) => {
  const { one, other } = createReplicas();
  for (let id = 0; one.bytes < MAX_STORED_BYTES - MAX_OUTCOME_BYTES; id += 1) {
    one.keep(outcomeOf(`${id}`, MAX_OUTCOME_BYTES / 2), TTL_MS);
  }
  one.keep(outcomeOf('rest', (MAX_STORED_BYTES - one.bytes) * 0.7), TTL_MS);
  const begun: StoredOutcome = { ...outcomeOf('0', 0), state: { kind: 'begun' } };
  const bytes = one.bytes;
  t.true(await one.keep(outcomeOf('0', MAX_OUTCOME_BYTES / 2), TTL_MS));
  t.is(one.bytes, bytes);
  t.true(await one.keep(begun, TTL_MS));
  t.deepEqual(await other.find('0', 'alice'), begun);
});
