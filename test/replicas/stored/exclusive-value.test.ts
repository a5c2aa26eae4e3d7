import test from 'ava';
import { ExclusiveValue, MAX_TURN_MS, MAX_WAIT_MS } from '../../../src/replicas/stored/exclusive-value.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { MemoryStore } from '../../support/memory-store.ts';

type Judged = 'alive' | 'dead';

/** As one replica has it. */
function createValue(store: MemoryStore, id: string, { clock = new FakeClock(), judge = (): Judged => 'alive' } = {}) {
  const peers = { judge: async () => judge() };
  const cluster = { store, self: { id, address: 'http://replica' }, peers, isHeld: true };
  return new ExclusiveValue({ cluster, name: 'value', clock });
}

/** Lets what waits for nothing but answers of the store go on. */
async function settle(clock: FakeClock): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(250);
  }
}

test('one has the turn, and the next one begins with what it has left', async (t) => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  const [one, other] = [createValue(store, 'one', { clock }), createValue(store, 'other', { clock })];
  const said: string[] = [];
  let end = (): void => {};
  const first = one.exclusively(async () => {
    said.push('one begins');
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    await one.set('new');
  });
  await settle(clock);
  const second = other.exclusively(async () => said.push(`other sees ${other.value}`));
  await settle(clock);
  t.deepEqual(said, ['one begins']);
  end();
  await first;
  await settle(clock);
  await second;
  t.deepEqual(said, ['one begins', 'other sees new']);
});

test('the turn of a replica that is gone is taken, and its late word changes nothing that was said since', async (t) => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  const paused = createValue(store, 'paused', { clock });
  const next = createValue(store, 'next', { clock, judge: () => 'dead' });
  let goOn = (): void => {};
  const late = paused.exclusively(async () => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await paused.set('late');
  });
  await settle(clock);
  await next.exclusively(() => next.set('in time'));
  goOn();
  await late;
  await settle(clock);
  t.is(paused.value, 'in time');
  await next.look();
  t.is(next.value, 'in time');
});

test('what a replica has found out that lost its turn is kept where nobody has found out anything since', async (t) => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  const paused = createValue(store, 'paused', { clock });
  const next = createValue(store, 'next', { clock, judge: () => 'dead' });
  let seen: string | undefined;
  await paused.exclusively(() =>
    next.exclusively(async () => {
      await paused.set('rotated');
      await next.look();
      seen = next.value;
      await next.set('rotated again');
    }),
  );
  t.is(seen, 'rotated');
  await paused.look();
  t.is(paused.value, 'rotated again');
});

test('a turn that is never given back ends', async (t) => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  void createValue(store, 'stuck', { clock }).exclusively(() => new Promise(() => {}));
  await settle(clock);
  const other = createValue(store, 'other', { clock });
  const taken = other.exclusively(async () => 'taken');
  await settle(clock);
  clock.advance(MAX_TURN_MS);
  await settle(clock);
  t.is(await taken, 'taken');
});

test('whoever waits while others take one turn after the other is told so in the end, and has done nothing', async (t) => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  const turnOf = async (token: number): Promise<void> => {
    const expected = (await store.records.read('value')) ?? 'absent';
    await store.records.put('value', { expected, next: { owner: `other ${token}`, token, value: '' }, ttlMs: 1000 });
  };
  await turnOf(1);
  const waiting = createValue(store, 'waiting', { clock }).exclusively(async () => t.fail('it was run'));
  const failure = t.throwsAsync(waiting);
  for (let minute = 1; minute * 60_000 <= MAX_WAIT_MS; minute += 1) {
    await settle(clock);
    await turnOf(minute + 1);
    clock.advance(60_000);
  }
  await settle(clock);
  t.like(await failure, { code: 'ERR_CLUSTER_TURN' });
});
