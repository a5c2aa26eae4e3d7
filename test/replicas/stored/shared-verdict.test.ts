import test from 'ava';
import type { RecordStore, Store } from '../../../src/replicas/store/store.ts';
import { SharedVerdict } from '../../../src/replicas/stored/shared-verdict.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** A store that counts what is written, and that may be out of reach. */
class WatchedRecords implements RecordStore {
  isGone = false;
  puts = 0;
  readonly #records = new MemoryStore().records;

  async read(name: string): ReturnType<RecordStore['read']> {
    if (this.isGone) throw new Error('gone');
    return this.#records.read(name);
  }

  async put(...write: Parameters<RecordStore['put']>): Promise<boolean> {
    this.puts += 1;
    return this.#records.put(...write);
  }

  async remove(): Promise<void> {}
}

class Replica {
  /** Whether it has found out itself. */
  isKnown = false;
  readonly verdict: SharedVerdict;

  constructor(id: string, records: RecordStore, clock: FakeClock) {
    const store: Store = Object.assign(new MemoryStore(), { records });
    const cluster = { store, self: { id, address: `http://${id}` } };
    this.verdict = new SharedVerdict({ cluster, server: 'a', isKnown: () => this.isKnown, clock });
  }

  /** As before each modern call. */
  async isModern(): Promise<boolean> {
    await this.verdict.look();
    return this.verdict.isModern;
  }
}

function createReplicas() {
  const clock = new FakeClock();
  const records = new WatchedRecords();
  const [one, other] = [new Replica('one', records, clock), new Replica('other', records, clock)];
  return { clock, records, one, other };
}

const written = () => new Promise((resolve) => setImmediate(resolve));

test('a replica learns that a server is modern from the one that has called it', async (t) => {
  const { clock, one, other } = createReplicas();
  t.false(await other.isModern());
  one.isKnown = true;
  t.true(await one.isModern());
  await written();
  clock.advance(5 * SECOND_MS);
  t.true(await other.isModern());
});

test('the store is not asked for each call', async (t) => {
  const { clock, one, other } = createReplicas();
  t.not(other.verdict.look(), undefined);
  await written();
  t.is(other.verdict.look(), undefined, 'nothing was there a moment ago');
  one.isKnown = true;
  t.is(one.verdict.look(), undefined, 'who knows it does not ask');
  await written();
  clock.advance(5 * SECOND_MS);
  t.true(await other.isModern());
  clock.advance(MINUTE_MS - 1);
  t.is(other.verdict.look(), undefined, 'what was found is relied on for a while');
  clock.advance(1);
  t.not(other.verdict.look(), undefined);
});

test('a verdict is renewed while the server is called, and not with each call', async (t) => {
  const { clock, records, one } = createReplicas();
  one.isKnown = true;
  for (let seconds = 0; seconds < 9 * 60; seconds += 1) {
    await one.isModern();
    await written();
    clock.advance(SECOND_MS);
  }
  t.is(records.puts, 3);
});

test('without the store a server is not taken for modern, and the verdict is told when the store is back', async (t) => {
  const { clock, records, one, other } = createReplicas();
  records.isGone = true;
  t.false(await other.isModern());
  one.isKnown = true;
  t.true(await one.isModern());
  await written();
  records.isGone = false;
  clock.advance(5 * SECOND_MS);
  await one.isModern();
  await written();
  t.true(await other.isModern());
});
