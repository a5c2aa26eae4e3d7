import type { TestFn } from 'ava';
import type { Store } from '../../../src/replicas/store/store.ts';

const TTL_MS = 60_000;
const LIMITS = { maxEntries: 100, ttlMs: TTL_MS };

/** What every store does. @param open a store of its own for each test, or one that others use under other names */
export function testStoreContract(test: TestFn, title: string, open: () => Promise<Store>): void {
  let last = 0;
  const unique = (): string => `name ${process.pid} ${last++}`;

  test(`${title}: a lease shows its latest sign, until it is condemned for good`, async (t) => {
    const { leases } = await open();
    const holder = unique();
    for (const sign of [3, 4, 3]) t.deepEqual(await leases.renew(holder, sign), { kind: 'renewed', since: 3 });
    t.deepEqual(await leases.read(holder), { kind: 'sign', sign: '3.4' });
    t.is(await leases.condemn(holder, { kind: 'sign', sign: '3.3' }), 'alive');
    t.is(await leases.condemn(holder, { kind: 'sign', sign: '3.4' }), 'dead');
    t.deepEqual(await leases.renew(holder, 5), { kind: 'dead' });
    t.deepEqual(await leases.read(holder), { kind: 'dead' });
    t.is(await leases.condemn(holder, { kind: 'dead' }), 'dead');
  });

  test(`${title}: a holder of whom nothing is known can be condemned, unless it shows a sign`, async (t) => {
    const { leases } = await open();
    const [unknown, known] = [unique(), unique()];
    const seen = { unknown: await leases.read(unknown), known: await leases.read(known) };
    t.deepEqual(await leases.read(unknown), seen.unknown);
    t.notDeepEqual(seen.unknown, seen.known);
    t.deepEqual(await leases.renew(known, 7), { kind: 'renewed', since: 7 });
    t.deepEqual(await leases.renew(known, 8), { kind: 'renewed', since: 7 });
    t.is(await leases.condemn(unknown, seen.unknown), 'dead');
    t.is(await leases.condemn(known, seen.known), 'alive');
    t.deepEqual(await leases.renew(unknown, 1), { kind: 'dead' });
  });

  test(`${title}: a holder that leaves is dead`, async (t) => {
    const { leases } = await open();
    const leaving = unique();
    await leases.renew(leaving, 1);
    await leases.release(leaving);
    t.deepEqual(await leases.read(leaving), { kind: 'dead' });
  });

  test(`${title}: a record is written by its owner only, and goes to one of those who take it`, async (t) => {
    const { records } = await open();
    const name = unique();
    const first = { owner: 'a', token: 1, value: 'ä'.repeat(1000) };
    t.is(await records.read(name), undefined);
    t.true(await records.put(name, { expected: 'absent', next: first, ttlMs: TTL_MS }));
    t.false(await records.put(name, { expected: 'absent', next: first, ttlMs: TTL_MS }));
    t.deepEqual(await records.read(name), first);
    const taken = await Promise.all(
      ['b', 'c', 'd'].map((owner) =>
        records.put(name, { expected: first, next: { owner, token: 2, value: owner }, ttlMs: TTL_MS }),
      ),
    );
    t.is(taken.filter(Boolean).length, 1);
    t.false(await records.put(name, { expected: first, next: { ...first, value: 'late' }, ttlMs: TTL_MS }));
    await records.remove(name, first);
    const now = await records.read(name);
    t.is(now?.token, 2);
    await records.remove(name, now ?? first);
    t.is(await records.read(name), undefined);
  });

  test(`${title}: what is kept for no whole number of milliseconds is kept`, async (t) => {
    const { records, logs } = await open();
    const name = unique();
    const next = { owner: 'a', token: 1, value: 'kept' };
    t.true(await records.put(name, { expected: 'absent', next, ttlMs: TTL_MS + 0.5 }));
    t.deepEqual(await records.read(name), next);
    await logs.append(name, [Buffer.from('kept')], { ...LIMITS, ttlMs: TTL_MS + 0.5 });
    t.deepEqual(await logs.read(name), [Buffer.from('kept')]);
  });

  test(`${title}: a log has its entries in order, and drops the oldest`, async (t) => {
    const { logs } = await open();
    const name = unique();
    t.deepEqual(await logs.read(name), []);
    const entries = Array.from({ length: 300 }, (_, index) => Buffer.from([index % 256, 0, 255]));
    await logs.append(name, entries.slice(0, 10), LIMITS);
    await logs.append(name, [], LIMITS);
    t.deepEqual(await logs.read(name), entries.slice(0, 10));
    for (let from = 10; from < 300; from += 29) await logs.append(name, entries.slice(from, from + 29), LIMITS);
    const kept = await logs.read(name);
    t.deepEqual(kept, entries.slice(-kept.length));
    t.true(kept.length >= LIMITS.maxEntries);
    await logs.remove(name);
    t.deepEqual(await logs.read(name), []);
  });
}
