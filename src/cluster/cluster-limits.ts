import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import type { Cluster } from './cluster.ts';
import { SharedLimit, type SpareShare } from './shared-limit.ts';

/** Callers that have something of their limits here; each is a record in the store. */
const MAX_LIMITS = 10_000;
/** Shares are looked at within a lease. */
const SWEEPS = 3;
/** What a replica that leaves does not need any more, others need now: they go on with its sessions. */
const LEAVING_SWEEP_MS = 100;

/** The limits that hold for all replicas together, by name. */
export class ClusterLimits {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #limits = new Map<string, SharedLimit>();
  readonly #stops: (() => void)[];

  constructor(cluster: Cluster, clock: Clock) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#stops = [
      clock.every(cluster.leaseMs / SWEEPS, () => this.#sweep()),
      cluster.members.onNewEpoch(() => {
        for (const limit of this.#limits.values()) limit.storeAgain();
      }),
    ];
  }

  /** @param kind what is limited: `sessions of everything` */
  of(kind: string, total: number, taken: () => number, spare: SpareShare = 'rest-of-block'): LimitTaker {
    const limit = this.#find(kind, spare);
    const close = limit?.addTaker(total, taken);
    return { limit, close: () => close?.() };
  }

  /** A number for each caller. What callers have is counted by whoever takes it. */
  perCaller(kind: string, total: number, takenBy: (principal: string) => number): CallerLimits {
    return new CallerLimits(total, takenBy, (principal, taken) =>
      this.of(JSON.stringify([kind, principal]), total, taken),
    );
  }

  #find(name: string, spare: SpareShare): SharedLimit | undefined {
    const known = this.#limits.get(name);
    if (known !== undefined || this.#limits.size >= MAX_LIMITS) return known;
    const now = (): number => this.#clock.now();
    const limit = new SharedLimit({ name: `limit ${name}`, cluster: this.#cluster, spare, now });
    this.#limits.set(name, limit);
    return limit;
  }

  #sweep(): void {
    for (const [name, limit] of this.#limits) {
      if (limit.isUnused && !limit.hasTakers) this.#limits.delete(name);
      else limit.sweep();
    }
  }

  /** What ends here is free for the others soon after. */
  beginLeaving(): void {
    this.#stops.push(this.#clock.every(LEAVING_SWEEP_MS, () => this.#sweep()));
  }

  /** What is held is free for the others as soon as this replica has left. */
  close(): void {
    for (const stop of this.#stops) stop();
  }
}

/** Undefined: there are so many limits that no more can be kept. */
export interface LimitTaker {
  readonly limit: SharedLimit | undefined;
  close(): void;
}

/** One limit for each caller, which is known for as long as the caller has something. */
export class CallerLimits {
  readonly total: number;
  readonly #takenBy: (principal: string) => number;
  readonly #open: (principal: string, taken: () => number) => LimitTaker;
  readonly #takers = new Map<string, LimitTaker>();

  constructor(
    total: number,
    takenBy: (principal: string) => number,
    open: (principal: string, taken: () => number) => LimitTaker,
  ) {
    this.total = total;
    this.#takenBy = takenBy;
    this.#open = open;
  }

  /** As of one limit. */
  reserve(principal: string): Promise<void> | undefined {
    return this.#of(principal).limit?.reserve();
  }

  /** Why this caller gets no more; undefined: it may have one more. */
  refusalFor(principal: string): 'full' | BridgeError | undefined {
    return refusalOf(this.#of(principal).limit);
  }

  #of(principal: string): LimitTaker {
    const known = this.#takers.get(principal);
    if (known !== undefined) return known;
    this.#forgetUnused();
    const taker = this.#open(principal, () => this.#takenBy(principal));
    this.#takers.set(principal, taker);
    return taker;
  }

  /** As many are looked at as are added. */
  #forgetUnused(): void {
    for (const [principal, taker] of this.#takers) {
      this.#takers.delete(principal);
      if (taker.limit !== undefined && !taker.limit.isUnused) {
        this.#takers.set(principal, taker);
        return;
      }
      taker.close();
    }
  }

  close(): void {
    for (const taker of this.#takers.values()) taker.close();
    this.#takers.clear();
  }
}

/**
 * Why there is no more of a limit; undefined: there is. `full`: the replicas have all of it, as far as is known. Whoever could
 * not wait for more, as a client by WebSocket, finds what the others could spare when it tries again.
 */
export function refusalOf(limit: SharedLimit | undefined): 'full' | BridgeError | undefined {
  if (limit === undefined) return TOO_MANY;
  if (!limit.isFull) return undefined;
  void limit.reserve();
  return limit.failure ?? 'full';
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `${MAX_LIMITS} callers have sessions or calls here at a time, the most that --cluster-limits counts; try again later.`,
  { retryAfterMs: 1000 },
);
