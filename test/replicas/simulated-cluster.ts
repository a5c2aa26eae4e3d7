import { pino } from 'pino';
import type { Clock } from '../../src/deps.ts';
import { BridgeError } from '../../src/errors.ts';
import { SharedLimit } from '../../src/replicas/limits/shared-limit.ts';
import { Members } from '../../src/replicas/ownership/members.ts';
import { PeerLeases } from '../../src/replicas/ownership/peer-leases.ts';
import { ReplicaLease } from '../../src/replicas/ownership/replica-lease.ts';
import type { Store } from '../../src/replicas/store/store.ts';
import type { MemoryStore } from '../support/memory-store.ts';

export const TTL_MS = 6000;
const COMMAND_TIMEOUT_MS = 2000;
const log = pino({ level: 'silent' });

interface PlannedStep {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time for all, which passes from one step to the next, with what promises do in between. */
export class Simulation {
  nowMs = 0;
  #steps: PlannedStep[] = [];
  #order = 0;
  /** Questions to a store that is a program of its own: time stands still until they are answered. */
  readonly #asked = new Set<Promise<unknown>>();

  /** Time goes on when this is settled. */
  hold(asked: Promise<unknown>): void {
    this.#asked.add(asked);
    const settle = (): void => void this.#asked.delete(asked);
    asked.then(settle, settle);
  }

  after(delayMs: number, run: () => void): void {
    this.#steps.push({ atMs: this.nowMs + delayMs, order: this.#order++, run });
  }

  /** @param check is called after each step */
  async run(untilMs: number, check: () => void): Promise<void> {
    for (;;) {
      const next = this.#steps.reduce<PlannedStep | undefined>(
        (first, step) => (first !== undefined && !isBefore(step, first) ? first : step),
        undefined,
      );
      if (next === undefined || next.atMs > untilMs) break;
      this.#steps.splice(this.#steps.indexOf(next), 1);
      this.nowMs = next.atMs;
      next.run();
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      while (this.#asked.size > 0) await Promise.allSettled(this.#asked);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      check();
    }
    this.nowMs = untilMs;
  }
}

function isBefore(one: PlannedStep, other: PlannedStep): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/**
 * What happens to a replica.
 * - `stopped`: nothing of it runs, as after SIGSTOP; its clocks go on.
 * - `asleep`: nor does its monotonic clock, as in a machine that is suspended.
 */
export type Condition = 'running' | 'stopped' | 'asleep';

/** A message to the store and its reply: how long each takes; lost ones never arrive, refused ones fail at once. */
export interface Trip {
  readonly thereMs: number | 'lost' | 'refused';
  readonly backMs: number | 'lost';
}

/** A machine in simulated time: its clocks, and its way to the store, which delays, reorders and loses messages. */
export class SimulatedMachine {
  readonly clock: Clock;
  readonly wallClock: () => number;
  readonly #simulation: Simulation;
  #condition: Condition = 'running';
  #asleepMs = 0;
  #asleepSinceMs = 0;
  #wallOffsetMs = 0;
  #overdue: (() => void)[] = [];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.clock = this.#createClock();
    this.wallClock = () => 1_700_000_000_000 + simulation.nowMs + this.#wallOffsetMs;
  }

  get condition(): Condition {
    return this.#condition;
  }

  set condition(condition: Condition) {
    const { nowMs } = this.#simulation;
    if (this.#condition === 'asleep') this.#asleepMs += nowMs - this.#asleepSinceMs;
    this.#asleepSinceMs = nowMs;
    this.#condition = condition;
    if (condition !== 'running') return;
    for (const run of this.#overdue.splice(0)) this.#simulation.after(0, () => this.run(run));
  }

  /** The time of day is set. */
  jump(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Now, or when it runs again. */
  run(run: () => void): void {
    if (this.#condition === 'running') run();
    else this.#overdue.push(run);
  }

  #createClock(): Clock {
    const simulation = this.#simulation;
    const after = (delayMs: number, run: () => void): (() => void) => {
      let isCleared = false;
      simulation.after(delayMs, () => this.run(() => !isCleared && run()));
      return () => {
        isCleared = true;
      };
    };
    return {
      now: () => {
        const asleepNow = this.#condition === 'asleep' ? simulation.nowMs - this.#asleepSinceMs : 0;
        return simulation.nowMs - this.#asleepMs - asleepNow;
      },
      after,
      every(periodMs, run) {
        let clear = (): void => {};
        const next = (): void => {
          clear = after(periodMs, () => {
            next();
            run();
          });
        };
        next();
        return () => clear();
      },
    };
  }

  /** The store as it is reached from here. */
  reach(store: Store, nextTrip: () => Trip): Store {
    const { leases, records, logs } = store;
    const call = <Reply>(ask: () => Promise<Reply>): Promise<Reply> =>
      new Promise((resolve, reject) => {
        const { thereMs, backMs } = nextTrip();
        if (thereMs === 'refused') return reject(UNREACHABLE);
        this.#simulation.after(COMMAND_TIMEOUT_MS, () => this.run(() => reject(new Error('timed out'))));
        if (thereMs === 'lost') return;
        this.#simulation.after(thereMs, () => {
          const reply = ask();
          this.#simulation.hold(reply);
          if (backMs !== 'lost') {
            this.#simulation.after(backMs, () => this.run(() => void reply.then(resolve, reject)));
          }
        });
      });
    return {
      leases: {
        renew: (...args) => call(() => leases.renew(...args)),
        read: (...args) => call(() => leases.read(...args)),
        condemn: (...args) => call(() => leases.condemn(...args)),
        release: (...args) => call(() => leases.release(...args)),
      },
      records: {
        read: (...args) => call(() => records.read(...args)),
        put: (...args) => call(() => records.put(...args)),
        remove: (...args) => call(() => records.remove(...args)),
      },
      logs: {
        append: (...args) => call(() => logs.append(...args)),
        read: (...args) => call(() => logs.read(...args)),
        remove: (...args) => call(() => logs.remove(...args)),
      },
      status: store.status,
      onAvailable: (run) => store.onAvailable(() => this.run(run)),
      close: async () => undefined,
    };
  }
}

/** One replica in simulated time: its own lease, and what it thinks of the others. */
export class SimulatedReplica {
  readonly name: string;
  readonly lease: ReplicaLease;
  readonly peers: PeerLeases;
  readonly members: Members;
  readonly #machine: SimulatedMachine;
  readonly #store: Store;

  constructor(name: string, simulation: Simulation, store: MemoryStore, nextTrip: () => Trip) {
    this.name = name;
    this.#machine = new SimulatedMachine(simulation);
    const { clock, wallClock } = this.#machine;
    this.#store = this.#machine.reach(store, nextTrip);
    const { leases } = this.#store;
    const lost = (): void => undefined;
    this.lease = new ReplicaLease({ leases, holder: name, ttlMs: TTL_MS, clock, wallClock, log, lost });
    this.peers = new PeerLeases({ leases, ttlMs: TTL_MS, clock });
    let ids = 0;
    this.members = new Members({
      store: this.#store,
      peers: this.peers,
      leaseMs: TTL_MS,
      self: () => this.#self,
      clock,
      wallClock,
      randomId: () => `${name}-${ids++}`,
    });
  }

  get #self() {
    return { id: this.name, address: `http://${this.name}` };
  }

  /** It becomes a member, however often that has to be tried. */
  async join(): Promise<void> {
    await this.lease.start();
    await this.members.start();
  }

  /** A limit that holds for all replicas, and is looked at as often as a bridge does. */
  limitTo(total: number, taken: () => number): SharedLimit {
    const { lease, peers, members } = this;
    const { clock } = this.#machine;
    const cluster = {
      store: this.#store,
      members,
      peers,
      self: this.#self,
      get isHeld(): boolean {
        return lease.isHeld;
      },
    };
    const limit = new SharedLimit({ name: 'limit', cluster, spare: 'rest-of-block', now: () => clock.now() });
    limit.addTaker(total, taken);
    members.onNewEpoch(() => limit.storeAgain());
    clock.every(TTL_MS / 3, () => limit.sweep());
    return limit;
  }

  /** Something of it runs, unless it is stopped. */
  every(periodMs: number, run: () => void): void {
    this.#machine.clock.every(periodMs, run);
  }

  set condition(condition: Condition) {
    this.#machine.condition = condition;
  }

  /** The time of day is set. */
  jump(ms: number): void {
    this.#machine.jump(ms);
  }
}

const UNREACHABLE = new BridgeError('ERR_STORE_UNAVAILABLE', 'nobody takes the connection');
