/** Replicas whose store is emptied, slow, away, comes and goes, or forgets what it has confirmed, in simulated time. */
import anyTest, { type TestFn } from 'ava';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { ClusterKey } from '../../src/replicas/store/cluster-key.ts';
import { connectRedisStore } from '../../src/replicas/store/redis/redis-store.ts';
import type { Store } from '../../src/replicas/store/store.ts';
import { MemoryStore } from '../support/memory-store.ts';
import { startRedis, WHY_NO_REDIS } from '../support/redis-server.ts';
import { type Outcome, type SessionKind, SimulatedBridge, UNKNOWN } from './simulated-bridge.ts';
import { Simulation, type Trip, TTL_MS } from './simulated-cluster.ts';

const test = anyTest as TestFn;
const NAMES = ['one', 'two', 'three'] as const;
const FAULTS_MS = 10 * TTL_MS;
/** Then everything has run well for so long that nothing of what was before matters. */
const SETTLED_MS = FAULTS_MS + 4 * TTL_MS;
/** How long it takes until a store that is back is connected to, and has been asked something. */
const RECONNECT_MS = [50, 250, 450] as const;
const USABLE_MS = 600;
/** A command whose reply is lost is waited for. */
const COMMAND_MS = 2000;
const ASK_MS = 700;
const TIMEOUT_MS = 4 * 60_000;

const GOOD: Trip = { thereMs: 1, backMs: 1 };
const REFUSED: Trip = { thereMs: 'refused', backMs: 'lost' };
const LOST: Trip = { thereMs: 'lost', backMs: 'lost' };

/**
 * What happens to the store, for all replicas or for one of them, or to a replica.
 * - `away`: connections are refused.
 * - `flapping`: so each other second.
 * - `silent`: nothing is answered.
 * - `slow`.
 * - `forgets`: it goes back to what it held a while ago, as after a failover.
 * - `stopped`: the replica does not run.
 */
type Fault =
  | { readonly kind: 'away' | 'flapping'; readonly forMs: number; readonly isEmptied: boolean; readonly who: Who }
  | { readonly kind: 'silent'; readonly forMs: number; readonly who: Who }
  | { readonly kind: 'slow'; readonly forMs: number; readonly delayMs: number }
  | { readonly kind: 'forgets'; readonly latestMs: number }
  | { readonly kind: 'stopped'; readonly forMs: number; readonly who: 0 | 1 | 2 };
type Who = 'all' | 0 | 1 | 2;

interface PlannedFault {
  readonly atMs: number;
  readonly fault: Fault;
}

const forMs = fc.integer({ min: 1, max: 3 * TTL_MS });
const one = fc.constantFrom(0 as const, 1 as const, 2 as const);
const who = fc.oneof({ weight: 3, arbitrary: fc.constant('all' as const) }, one);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('away' as const, 'flapping' as const),
    forMs,
    isEmptied: fc.boolean(),
    who,
  }),
  fc.record({ kind: fc.constant('silent' as const), forMs, who }),
  fc.record({ kind: fc.constant('slow' as const), forMs, delayMs: fc.integer({ min: 50, max: 900 }) }),
  fc.record({ kind: fc.constant('forgets' as const), latestMs: fc.integer({ min: 1, max: TTL_MS }) }),
  fc.record({ kind: fc.constant('stopped' as const), forMs, who: one }),
);
const faults: fc.Arbitrary<readonly PlannedFault[]> = fc.array(
  fc.record({ atMs: fc.integer({ min: 0, max: FAULTS_MS }), fault }),
  { maxLength: 4 },
);

const atAll = (fault: Extract<Fault, { kind: 'away' | 'flapping' }>): readonly PlannedFault[] => [
  { atMs: 20_400, fault },
];
/** Tried each time: it is started anew with nothing in it, soon or after more than a lease is relied on, and comes and goes. */
const EXAMPLES: [readonly PlannedFault[]][] = [
  [atAll({ kind: 'away', forMs: 1000, isEmptied: true, who: 'all' })],
  [atAll({ kind: 'away', forMs: 0.8 * TTL_MS, isEmptied: true, who: 'all' })],
  [atAll({ kind: 'flapping', forMs: 3 * TTL_MS, isEmptied: false, who: 'all' })],
  [[{ atMs: 20_400, fault: { kind: 'stopped', forMs: 2 * TTL_MS, who: 0 } }]],
  // A client asks it for a session that others have said to be gone, and is answered as soon as it runs.
  [[{ atMs: 10_501, fault: { kind: 'stopped', forMs: 7799, who: 1 } }]],
];

/** A store that can be emptied, and taken back where it supports that. */
interface PoorStore {
  readonly store: Store;
  clear(): Promise<unknown>;
  remember?(): () => void;
}

interface KnownSession {
  readonly kind: SessionKind;
  readonly id: string;
  /** A client was told that it does not exist. */
  isGone: boolean;
}

/** Three replicas and their clients. What must never be so throws. */
class World {
  readonly simulation = new Simulation();
  readonly bridges: readonly SimulatedBridge[];
  readonly sessions: KnownSession[] = [];
  readonly #poor: PoorStore;
  readonly #onAvailable = NAMES.map(() => new Set<() => void>());
  /** What is wrong with the way of each replica to the store. */
  readonly #ways: Set<Trip>[] = NAMES.map(() => new Set());
  /** Since when it has been well, and the replica has run, as far as replies that it has waited for have come. */
  readonly #goodSinceMs = NAMES.map(() => 0);
  readonly #runsSinceMs = NAMES.map(() => 0);
  /** When both were so for long enough at last. */
  readonly #usableMs = NAMES.map(() => Number.NEGATIVE_INFINITY);
  readonly #renamedMs = NAMES.map(() => 0);
  readonly #broken: string[] = [];
  /** It was emptied, or has gone back. */
  #hasForgotten = false;
  /** It has gone back: what it has confirmed is lost, and nothing tells that. */
  hasLied = false;
  #asked = 0;

  constructor(poor: PoorStore) {
    this.#poor = poor;
    const others = new Map<string, SimulatedBridge>();
    const { simulation } = this;
    this.bridges = NAMES.map((name, index) => {
      const nextTrip = (): Trip => [...(this.#ways[index] ?? [])].at(-1) ?? GOOD;
      const events = { died: (bridge: SimulatedBridge, id: string) => this.#died(bridge, id) };
      const { leases, records, logs, status } = poor.store;
      const onAvailable = (run: () => void) => {
        this.#onAvailable[index]?.add(run);
        return () => void this.#onAvailable[index]?.delete(run);
      };
      const store: Store = { leases, records, logs, status, onAvailable, close: async () => undefined };
      const bridge = new SimulatedBridge(name, { simulation, store, nextTrip, others, events });
      others.set(bridge.address, bridge);
      return bridge;
    });
    this.bridges.forEach((bridge, index) => {
      const join = (): void =>
        void bridge.join().then(
          () => bridge.cluster?.onLost(() => this.#renamed(index)),
          () => simulation.after(500, join),
        );
      join();
    });
  }

  #renamed(index: number): void {
    this.#renamedMs[index] = this.simulation.nowMs;
  }

  /** The store says that a replica is dead: another one must have said it. */
  #died(dead: SimulatedBridge, id: string): void {
    const isSaid = this.bridges.some((bridge) => bridge !== dead && bridge.cluster?.peers.isDead(id) === true);
    if (!isSaid) this.#broken.push(`${dead.name} is told that it is dead, which nobody has said`);
  }

  plan({ atMs, fault: planned }: PlannedFault): void {
    const end = (index: number) => Math.min(FAULTS_MS, index);
    this.simulation.after(atMs, () => {
      switch (planned.kind) {
        case 'stopped': {
          const bridge = this.bridges[planned.who];
          if (bridge === undefined) return;
          bridge.condition = 'stopped';
          this.simulation.after(end(atMs + planned.forMs) - atMs, () => {
            bridge.condition = 'running';
          });
          return;
        }
        case 'forgets':
          return this.#forget(planned.latestMs);
        case 'slow':
          return this.#impair('all', { thereMs: planned.delayMs, backMs: planned.delayMs }, end(atMs + planned.forMs));
        case 'silent':
          return this.#impair(planned.who, LOST, end(atMs + planned.forMs));
        case 'away':
          return this.#takeAway(planned, end(atMs + planned.forMs));
        case 'flapping':
          for (let from = atMs; from < end(atMs + planned.forMs); from += 2000) {
            this.simulation.after(from - atMs, () => this.#takeAway(planned, end(from + 1000)));
          }
      }
    });
  }

  #takeAway({ who: whose, isEmptied }: Extract<Fault, { kind: 'away' | 'flapping' }>, untilMs: number): void {
    if (isEmptied && whose === 'all') {
      this.#hasForgotten = true;
      this.simulation.hold(this.#poor.clear());
    }
    this.#impair(whose, { ...REFUSED }, untilMs);
  }

  #impair(whose: Who, trip: Trip, untilMs: number): void {
    const own = { ...trip };
    const meant = NAMES.flatMap((_, index) => (whose === 'all' || whose === index ? [index] : []));
    for (const index of meant) this.#ways[index]?.add(own);
    const lateMs = typeof trip.thereMs === 'number' || trip.thereMs === 'lost' ? COMMAND_MS : 0;
    this.simulation.after(untilMs - this.simulation.nowMs, () => {
      for (const index of meant) {
        this.#ways[index]?.delete(own);
        this.#goodSinceMs[index] = Math.max(this.#goodSinceMs[index] ?? 0, this.simulation.nowMs + lateMs);
      }
      // A command that is given up has its connection given up, too.
      for (const index of meant) {
        this.simulation.after(lateMs + (RECONNECT_MS[index] ?? 0), () => {
          if (this.#ways[index]?.size === 0) for (const run of [...(this.#onAvailable[index] ?? [])]) run();
        });
      }
    });
  }

  #forget(latestMs: number): void {
    const { remember } = this.#poor;
    if (remember === undefined) return;
    const forget = remember.call(this.#poor);
    this.simulation.after(latestMs, () => {
      this.#hasForgotten = true;
      this.hasLied = true;
      forget();
    });
  }

  /** Opens a session at a replica, and asks for one of those that there are, every now and then. */
  live(untilMs: number): void {
    if (this.simulation.nowMs > untilMs) return;
    this.simulation.after(ASK_MS, () => this.live(untilMs));
    this.#asked += 1;
    const bridge = this.bridges[this.#asked % NAMES.length];
    const kind = this.#asked % 2 === 0 ? 'remote' : 'process';
    const opened = this.#asked % 4 < 2 ? bridge?.open(kind) : undefined;
    if (opened !== undefined) this.sessions.push({ kind, id: opened, isGone: false });
    const session = this.sessions[(this.#asked * 7) % Math.max(1, this.sessions.length)];
    if (session === undefined || bridge === undefined) return;
    void bridge.ask(session.kind, session.id).then((outcome) => this.#answered(session, outcome));
  }

  #answered(session: KnownSession, outcome: Outcome): void {
    if (outcome === UNKNOWN) session.isGone = true;
    const index = this.bridges.findIndex(({ name }) => name === outcome);
    // A replica that cannot ask the store goes on with its processes, and a store that forgets may forget a verdict. One that was
    // stopped asks before it serves anything.
    if (!session.isGone || index < 0 || this.#hasForgotten || !this.#isReached(index)) return;
    this.#broken.push(`a session (${session.kind}) that a client was told to be gone is served by ${outcome}`);
  }

  /** Its replica has been able to ask the store for a while. */
  #isReached(index: number): boolean {
    const isWell = this.#ways[index]?.size === 0;
    return isWell && this.simulation.nowMs - (this.#goodSinceMs[index] ?? 0) >= USABLE_MS;
  }

  #isUsable(index: number): boolean {
    return this.#isReached(index) && this.simulation.nowMs - (this.#runsSinceMs[index] ?? 0) >= USABLE_MS;
  }

  /** Called after each step. */
  check(): void {
    const { nowMs } = this.simulation;
    for (const [index, bridge] of this.bridges.entries()) {
      const { cluster } = bridge;
      if (bridge.machine.condition !== 'running') {
        this.#runsSinceMs[index] = nowMs + COMMAND_MS;
        // What it has not noticed of the store before it was stopped, it can notice only afterward.
        if (!this.#isReached(index)) this.#goodSinceMs[index] = nowMs;
      }
      if (this.#isUsable(index)) this.#usableMs[index] = nowMs;
      if (cluster === undefined) continue;
      const isRecent = nowMs - (this.#usableMs[index] ?? 0) < TTL_MS / 2 - USABLE_MS;
      const isRenamed = nowMs - (this.#renamedMs[index] ?? 0) < 2 * TTL_MS;
      if (isRecent && !isRenamed && !cluster.isHeld && nowMs > TTL_MS) {
        this.#broken.push(`${bridge.name} does not rely on its lease, though the store has just answered`);
      }
      if (this.#hasForgotten || !cluster.isHeld) continue;
      if (this.bridges.some((other) => other.cluster?.peers.isDead(cluster.self.id) === true)) {
        this.#broken.push(`${bridge.name} relies on its lease, and is taken for dead`);
      }
    }
    if (this.#broken.length > 0) throw new Error(`${this.#broken[0]}, at ${nowMs}`);
  }

  /** Where each of these replicas says that each session is. */
  async find(sessions: readonly KnownSession[], at: readonly SimulatedBridge[]): Promise<readonly Found[]> {
    const found = sessions.map((session) => ({ session, places: at.map((): Outcome => 'nothing') }));
    for (const { session, places } of found) {
      at.forEach((bridge, index) => {
        void bridge.ask(session.kind, session.id).then((outcome) => {
          places[index] = outcome;
        });
      });
    }
    await this.simulation.run(this.simulation.nowMs + TTL_MS, () => this.check());
    return found;
  }
}

interface Found {
  readonly session: KnownSession;
  readonly places: readonly Outcome[];
}

/** Everything that has to be so whatever the store did. */
async function live(poor: PoorStore, planned: readonly PlannedFault[]): Promise<void> {
  const world = new World(poor);
  for (const each of planned) world.plan(each);
  world.live(FAULTS_MS + TTL_MS);
  await world.simulation.run(SETTLED_MS, () => world.check());
  const found = await world.find(world.sessions, world.bridges);
  for (const { session, places } of found) {
    const isAnswered = places.every((place) => place === UNKNOWN || NAMES.some((name) => name === place));
    // Nobody can tell that a store has lost what it has confirmed, a verdict among it.
    const isAgreed = world.hasLied || new Set(places).size === 1;
    if (isAnswered && isAgreed) continue;
    throw new Error(`replicas say of a session (${session.kind}) that it is at ${places.join(', ')}`);
  }
  if (world.hasLied) return;
  const [first, ...others] = world.bridges;
  if (first === undefined) throw new Error('there are three');
  const served = found.filter(({ session, places }) => session.kind === 'remote' && places.includes(first.name));
  first.condition = 'stopped';
  await world.simulation.run(world.simulation.nowMs + 3 * TTL_MS, () => undefined);
  for (const { places } of await world.find(
    served.map(({ session }) => session),
    others,
  )) {
    if (places.includes(UNKNOWN)) throw new Error('a session with a remote server has ended with its replica');
  }
}

test('replicas agree on what lives and where it is, whatever becomes of their store', async (t) => {
  t.timeout(TIMEOUT_MS);
  await fc.assert(
    fc.asyncProperty(faults, async (planned) => {
      const store = new MemoryStore();
      const clear = async (): Promise<void> => store.clear();
      await live({ store, clear, remember: () => store.remember() }, planned);
    }),
    { numRuns: 40, examples: EXAMPLES, includeErrorInReport: true },
  );
  t.pass();
});

const withRedis = WHY_NO_REDIS === undefined ? test.serial : (test.serial.skip as TestFn['serial']);
const WHY = WHY_NO_REDIS === undefined ? '' : ` (${WHY_NO_REDIS})`;

withRedis(`the same with what Redis does${WHY}`, async (t) => {
  const redis = await startRedis();
  const port = Number(redis.url.port);
  const store = await connectRedisStore({
    address: {
      topology: 'single',
      hosts: [{ host: '127.0.0.1', port }],
      masterName: undefined,
      user: undefined,
      password: undefined,
      sentinelLogin: undefined,
      database: 0,
      tls: false,
    },
    tls: { ca: undefined, cert: undefined, key: undefined },
    prefix: 'test:',
    key: new ClusterKey(['k'.repeat(40)]),
    log: pino({ level: 'silent' }),
  });
  const admin = new Redis(port);
  t.teardown(async () => {
    admin.disconnect();
    await store.close();
    await redis.stop();
  });
  await fc.assert(
    fc.asyncProperty(faults, async (planned) => {
      await admin.flushall();
      await live({ store, clear: () => admin.flushall() }, planned);
    }),
    { numRuns: 10, examples: EXAMPLES, includeErrorInReport: true },
  );
  t.pass();
});
