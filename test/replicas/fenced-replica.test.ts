/** A replica that was stopped for longer than its lease, and is asked for its sessions in the moment in which it goes on. */
import test, { type ExecutionContext } from 'ava';
import { MemoryStore } from '../support/memory-store.ts';
import { type Outcome, type SessionKind, SimulatedBridge, UNKNOWN } from './simulated-bridge.ts';
import { Simulation, TTL_MS } from './simulated-cluster.ts';

const STEP_MS = 500;

/** What a client is told of a session of the stopped replica: by the other one meanwhile, and by this one as soon as it runs. */
async function askWhileStopped(t: ExecutionContext, kind: SessionKind): Promise<readonly [Outcome, Outcome]> {
  const simulation = new Simulation();
  const store = new MemoryStore();
  const others = new Map<string, SimulatedBridge>();
  const nextTrip = () => ({ thereMs: 1, backMs: 1 }) as const;
  const run = (forMs: number) => simulation.run(simulation.nowMs + forMs, () => undefined);
  const [stopped, other] = (['one', 'two'] as const).map((name) => {
    const bridge = new SimulatedBridge(name, {
      simulation,
      store,
      nextTrip,
      others,
      events: { died: () => undefined },
    });
    others.set(bridge.address, bridge);
    void bridge.join();
    return bridge;
  });
  if (stopped === undefined || other === undefined) throw new Error('there are two');
  await run(TTL_MS);
  const id = stopped.open(kind) ?? '';
  await run(STEP_MS);
  stopped.condition = 'stopped';
  const asked: Outcome[] = [];
  void other.ask(kind, id).then((outcome) => asked.push(outcome));
  await run(3 * TTL_MS);
  t.is(asked.length, 1);
  void stopped.ask(kind, id).then((outcome) => asked.push(outcome));
  stopped.condition = 'running';
  await run(STEP_MS);
  const [meanwhile = 'nothing', then = 'nothing'] = asked;
  return [meanwhile, then];
}

test('a session with a process of which others have said that it is gone is served no more', async (t) => {
  t.deepEqual(await askWhileStopped(t, 'process'), [UNKNOWN, UNKNOWN]);
});

test('a session with a remote server that another replica has taken over is served there', async (t) => {
  t.deepEqual(await askWhileStopped(t, 'remote'), ['two', 'two']);
});
