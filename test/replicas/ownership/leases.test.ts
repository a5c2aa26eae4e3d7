import test from 'ava';
import fc from 'fast-check';
import { MemoryStore } from '../../support/memory-store.ts';
import { type Condition, SimulatedReplica, Simulation, type Trip, TTL_MS } from '../simulated-cluster.ts';

const GOOD: Trip = { thereMs: 1, backMs: 1 };

async function startReplicas(simulation: Simulation, nextTrip: () => Trip) {
  const store = new MemoryStore();
  const [one, other] = ['one', 'other'].map((name) => new SimulatedReplica(name, simulation, store, nextTrip));
  if (one === undefined || other === undefined) throw new Error('there are two');
  for (const replica of [one, other]) void replica.lease.start().catch(() => undefined);
  return { one, other, store };
}

/** Asks every now and then what has become of the other one. */
function watch(simulation: Simulation, watcher: SimulatedReplica, watched: string, died: () => void): void {
  const ask = (): void => {
    simulation.after(250, ask);
    watcher.peers.judge(watched).then(
      (verdict) => verdict === 'dead' && died(),
      () => undefined,
    );
  };
  ask();
}

test('a replica that runs is never taken for dead', async (t) => {
  const simulation = new Simulation();
  const { one, other } = await startReplicas(simulation, () => GOOD);
  watch(simulation, one, 'other', () => t.fail());
  watch(simulation, other, 'one', () => t.fail());
  await simulation.run(20 * TTL_MS, () => undefined);
  t.true(one.lease.isHeld && other.lease.isHeld);
});

test('a replica that is gone is dead soon after the time it may be silent for', async (t) => {
  const simulation = new Simulation();
  const { one, other } = await startReplicas(simulation, () => GOOD);
  let diedMs: number | undefined;
  watch(simulation, one, 'other', () => {
    diedMs ??= simulation.nowMs;
  });
  const stoppedMs = 10_000;
  simulation.after(stoppedMs, () => {
    other.condition = 'stopped';
  });
  await simulation.run(stoppedMs + 3 * TTL_MS, () => undefined);
  t.true(diedMs !== undefined && diedMs - stoppedMs < 1.5 * TTL_MS, `${diedMs}`);
});

test('a replica that leaves is dead at once', async (t) => {
  const simulation = new Simulation();
  const { one, other } = await startReplicas(simulation, () => GOOD);
  let isDead = false;
  simulation.after(1000, () => void other.lease.release());
  simulation.after(1100, () => void one.peers.judge('other').then((verdict) => (isDead = verdict === 'dead')));
  await simulation.run(1200, () => undefined);
  t.true(isDead);
  t.false(other.lease.isHeld);
});

test('a replica that wakes up after it was declared dead finds out, and does not come back', async (t) => {
  const simulation = new Simulation();
  const { one, other } = await startReplicas(simulation, () => GOOD);
  watch(simulation, one, 'other', () => undefined);
  simulation.after(1000, () => {
    other.condition = 'stopped';
  });
  simulation.after(4 * TTL_MS, () => {
    other.condition = 'running';
  });
  await simulation.run(6 * TTL_MS, () => undefined);
  t.true(other.lease.isLost);
});

test('a store that was emptied costs nobody its lease', async (t) => {
  const simulation = new Simulation();
  const { one, other, store } = await startReplicas(simulation, () => GOOD);
  watch(simulation, one, 'other', () => t.fail());
  for (let atMs = 1000; atMs < 10 * TTL_MS; atMs += 1300) simulation.after(atMs, () => store.clear());
  await simulation.run(10 * TTL_MS, () => undefined);
  t.true(other.lease.isHeld);
});

/** A message does not outlive the connection it was sent on, which is given up when its reply is late. */
const tripTime = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 50 }) },
  { weight: 2, arbitrary: fc.integer({ min: 50, max: 2000 }) },
  { weight: 2, arbitrary: fc.constant('lost' as const) },
);
const trip: fc.Arbitrary<Trip> = fc.record({ thereMs: tripTime, backMs: tripTime });

type Fault =
  | { readonly kind: 'condition'; readonly who: 0 | 1; readonly condition: Condition; readonly forMs: number }
  | { readonly kind: 'jump'; readonly who: 0 | 1; readonly ms: number }
  | { readonly kind: 'partition'; readonly forMs: number }
  | { readonly kind: 'emptied' };

const who = fc.constantFrom(0 as const, 1 as const);
const forMs = fc.integer({ min: 1, max: 3 * TTL_MS });
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    kind: fc.constant('condition' as const),
    who,
    condition: fc.constantFrom('stopped' as const, 'asleep' as const),
    forMs,
  }),
  // A clock that is set back while the machine sleeps hides the sleep from both clocks: that is beyond what can be told.
  fc.record({ kind: fc.constant('jump' as const), who, ms: fc.integer({ min: 0, max: 10 * TTL_MS }) }),
  fc.record({ kind: fc.constant('partition' as const), forMs }),
  fc.constant({ kind: 'emptied' as const }),
);

test('nobody relies on a lease when another may take over, whatever pauses, jumps, is lost or late', async (t) => {
  let deaths = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(trip, { minLength: 1, maxLength: 40 }),
      fc.array(fc.record({ atMs: fc.integer({ min: 0, max: 10 * TTL_MS }), fault }), { maxLength: 8 }),
      async (trips, faults) => {
        const simulation = new Simulation();
        let taken = 0;
        let isApart = false;
        const nextTrip = (): Trip =>
          isApart ? { thereMs: 'lost', backMs: 'lost' } : (trips[taken++ % trips.length] ?? GOOD);
        const { one, other, store } = await startReplicas(simulation, nextTrip);
        const dead = new Set<SimulatedReplica>();
        watch(simulation, one, 'other', () => dead.add(other));
        watch(simulation, other, 'one', () => dead.add(one));
        for (const { atMs, fault: planned } of faults) {
          simulation.after(atMs, () => {
            switch (planned.kind) {
              case 'condition': {
                const replica = planned.who === 0 ? one : other;
                replica.condition = planned.condition;
                simulation.after(planned.forMs, () => {
                  replica.condition = 'running';
                });
                return;
              }
              case 'jump':
                return (planned.who === 0 ? one : other).jump(planned.ms);
              case 'partition':
                isApart = true;
                simulation.after(planned.forMs, () => {
                  isApart = false;
                });
                return;
              case 'emptied':
                return store.clear();
            }
          });
        }
        await simulation.run(15 * TTL_MS, () => {
          for (const replica of dead) {
            if (replica.lease.isHeld) throw new Error(`${replica.name} relies on its lease at ${simulation.nowMs}`);
          }
        });
        deaths += dead.size;
      },
    ),
    { numRuns: 500 },
  );
  t.true(deaths > 50, `the faults have to lead to deaths: ${deaths}`);
});
