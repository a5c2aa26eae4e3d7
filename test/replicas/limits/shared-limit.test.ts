import test from 'ava';
import fc from 'fast-check';
import type { SharedLimit } from '../../../src/replicas/limits/shared-limit.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { type Condition, SimulatedReplica, Simulation, type Trip, TTL_MS } from '../simulated-cluster.ts';

const GOOD: Trip = { thereMs: 1, backMs: 1 };
const TOTAL = 10;

/** A replica whose clients open and close what is limited. */
class Taker {
  readonly replica: SimulatedReplica;
  readonly limit: SharedLimit;
  taken = 0;
  refused = 0;

  constructor(replica: SimulatedReplica, total = TOTAL) {
    this.replica = replica;
    this.limit = replica.limitTo(total, () => this.taken);
  }

  async open(): Promise<void> {
    await this.limit.reserve();
    if (this.limit.isFull) this.refused += 1;
    else this.taken += 1;
  }

  close(): void {
    this.taken = Math.max(0, this.taken - 1);
  }
}

function startReplicas(simulation: Simulation, nextTrip: () => Trip = () => GOOD) {
  const store = new MemoryStore();
  const takers = ['one', 'two', 'three'].map(
    (name) => new Taker(new SimulatedReplica(name, simulation, store, nextTrip)),
  );
  for (const { replica } of takers) {
    const join = (): void => void replica.join().catch(() => simulation.after(500, join));
    join();
  }
  const [one, two, three] = takers;
  if (one === undefined || two === undefined || three === undefined) throw new Error('there are three');
  return { one, two, three, takers, store };
}

const sumOf = (takers: readonly Taker[], of: (taker: Taker) => number): number =>
  takers.reduce((sum, taker) => sum + of(taker), 0);

test('replicas together take all that there is, and no more', async (t) => {
  const simulation = new Simulation();
  const { takers } = startReplicas(simulation);
  for (const taker of takers) {
    for (let index = 0; index < TOTAL; index += 1) simulation.after(2 * TTL_MS + 40 * index, () => void taker.open());
  }
  await simulation.run(4 * TTL_MS, () => t.true(sumOf(takers, ({ taken }) => taken) <= TOTAL));
  t.is(
    sumOf(takers, ({ taken }) => taken),
    TOTAL,
  );
  t.true(takers.every(({ refused }) => refused > 0));
  t.is(takers[0]?.limit.failure, undefined);
});

test('what one gives back another gets', async (t) => {
  const simulation = new Simulation();
  const { one, two } = startReplicas(simulation);
  simulation.after(2 * TTL_MS, () => {
    for (let index = 0; index < TOTAL; index += 1) void one.open();
  });
  simulation.after(3 * TTL_MS, () => {
    t.is(one.taken, TOTAL);
    one.taken = 4;
  });
  simulation.after(4 * TTL_MS, () => {
    for (let index = 0; index < TOTAL; index += 1) void two.open();
  });
  await simulation.run(5 * TTL_MS, () => undefined);
  t.is(two.taken, 6);
});

test('the share of a replica that is gone comes back when its lease is over', async (t) => {
  const simulation = new Simulation();
  const { one, two } = startReplicas(simulation);
  simulation.after(2 * TTL_MS, () => {
    for (let index = 0; index < TOTAL; index += 1) void one.open();
  });
  simulation.after(3 * TTL_MS, () => {
    one.replica.condition = 'stopped';
  });
  let openedMs: number | undefined;
  two.replica.every(1000, () => {
    if (simulation.nowMs > 3 * TTL_MS && two.taken === 0) void two.open();
    if (two.taken > 0) openedMs ??= simulation.nowMs;
  });
  await simulation.run(6 * TTL_MS, () => undefined);
  t.true(openedMs !== undefined && openedMs > 3.5 * TTL_MS && openedMs < 5 * TTL_MS, `${openedMs}`);
});

test('while the store is away a replica goes on with its share for as long as its lease holds', async (t) => {
  const simulation = new Simulation();
  let isAway = false;
  const { one } = startReplicas(simulation, () => (isAway ? { thereMs: 'lost', backMs: 'lost' } : GOOD));
  simulation.after(2 * TTL_MS, () => {
    for (let index = 0; index < 4; index += 1) void one.open();
  });
  const awayMs = 2 * TTL_MS + 100;
  simulation.after(awayMs, () => {
    isAway = true;
    one.close();
  });
  simulation.after(awayMs + TTL_MS / 4, () => void one.open());
  simulation.after(awayMs + TTL_MS / 4 + 10, () => {
    t.is(one.taken, 4);
    one.close();
  });
  simulation.after(awayMs + TTL_MS, () => void one.open());
  await simulation.run(awayMs + 2 * TTL_MS, () => undefined);
  t.is(one.taken, 3);
  t.is(one.limit.failure?.code, 'ERR_STORE_UNAVAILABLE');
});

test('a store that was emptied gives nobody what others hold', async (t) => {
  const simulation = new Simulation();
  const { one, two, takers, store } = startReplicas(simulation);
  simulation.after(2 * TTL_MS, () => {
    for (let index = 0; index < TOTAL - 2; index += 1) void one.open();
  });
  simulation.after(3 * TTL_MS, () => {
    store.clear();
    for (let index = 0; index < TOTAL; index += 1) void two.open();
  });
  simulation.after(5 * TTL_MS, () => {
    for (let index = 0; index < TOTAL; index += 1) void two.open();
  });
  await simulation.run(6 * TTL_MS, () => t.true(sumOf(takers, ({ taken }) => taken) <= TOTAL));
  t.deepEqual([one.taken, two.taken], [TOTAL - 2, 2]);
});

const tripTime = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 50 }) },
  { weight: 1, arbitrary: fc.integer({ min: 50, max: 2000 }) },
  { weight: 1, arbitrary: fc.constant('lost' as const) },
);
const trip: fc.Arbitrary<Trip> = fc.record({ thereMs: tripTime, backMs: tripTime });
const who = fc.constantFrom(0, 1, 2);

type Event =
  | { readonly kind: 'open' | 'close'; readonly who: number; readonly count: number }
  | { readonly kind: 'condition'; readonly who: number; readonly condition: Condition; readonly forMs: number }
  | { readonly kind: 'partition'; readonly forMs: number }
  | { readonly kind: 'emptied' };

const count = fc.integer({ min: 1, max: TOTAL });
const forMs = fc.integer({ min: 1, max: 3 * TTL_MS });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('open' as const, 'close' as const), who, count }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('condition' as const),
      who,
      condition: fc.constantFrom('stopped' as const, 'asleep' as const),
      forMs,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('partition' as const), forMs }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'emptied' as const }) },
);

interface Planned {
  readonly atMs: number;
  readonly event: Event;
}

/**
 * The store is emptied while the first replica is about to give back what it does not need. The second one has heard of that
 * already, and has told its share again; the first one has not, and must not take that share for an old one.
 */
const NOT_HEARD_YET: Planned[] = [
  { atMs: 0, event: { kind: 'open', who: 0, count: 6 } },
  { atMs: 0, event: { kind: 'open', who: 1, count: 4 } },
  { atMs: 11_353, event: { kind: 'condition', who: 0, condition: 'stopped', forMs: 3668 } },
  { atMs: 29_022, event: { kind: 'close', who: 0, count: 1 } },
  { atMs: 30_023, event: { kind: 'emptied' } },
  { atMs: 37_026, event: { kind: 'open', who: 0, count: 2 } },
];

test('what replicas may take never exceeds the limit, whatever pauses, is lost, late or forgotten', async (t) => {
  let opened = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(trip, { minLength: 1, maxLength: 40 }),
      fc.array(fc.record({ atMs: fc.integer({ min: 0, max: 10 * TTL_MS }), event }), { minLength: 5, maxLength: 25 }),
      async (trips, events) => {
        const simulation = new Simulation();
        let asked = 0;
        let isApart = false;
        const { takers, store } = startReplicas(simulation, () =>
          isApart ? { thereMs: 'lost', backMs: 'lost' } : (trips[asked++ % trips.length] ?? GOOD),
        );
        for (const { atMs, event: planned } of events) {
          simulation.after(2 * TTL_MS + atMs, () => {
            if (planned.kind === 'emptied') return store.clear();
            if (planned.kind === 'partition') {
              isApart = true;
              return simulation.after(planned.forMs, () => {
                isApart = false;
              });
            }
            const taker = takers[planned.who];
            if (taker === undefined) return;
            if (planned.kind === 'condition') {
              taker.replica.condition = planned.condition;
              return simulation.after(planned.forMs, () => {
                taker.replica.condition = 'running';
              });
            }
            for (let index = 0; index < planned.count; index += 1) {
              if (planned.kind === 'open') void taker.open();
              else taker.close();
            }
          });
        }
        await simulation.run(15 * TTL_MS, () => {
          const held = sumOf(takers, ({ limit }) => limit.held);
          if (held > TOTAL) throw new Error(`${held} may be taken at ${simulation.nowMs}`);
        });
        opened += sumOf(takers, ({ taken }) => taken);
        refused += sumOf(takers, (taker) => taker.refused);
      },
    ),
    { numRuns: 300, examples: [[[GOOD], NOT_HEARD_YET]] },
  );
  t.true(opened > 100 && refused > 100, `limits have to be reached: ${opened} opened, ${refused} refused`);
});
