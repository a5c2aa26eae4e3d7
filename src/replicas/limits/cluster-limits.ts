import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Cluster } from '../ownership/cluster.ts';
import { SharedLimit, type SpareShare } from './shared-limit.ts';

/** Limits tracked on this replica. Each of them has a record in the store. */
const MAX_LIMITS = 10_000;
/** Sweeps per lease. */
const SWEEPS = 3;
/**
 * Interval of sweeps while this replica shuts down. Other replicas continue its sessions and need the freed units soon.
 */
const LEAVING_SWEEP_MS = 100;

/** The limits on the total of all replicas, by name. */
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

  /**
   * Adds a user to the limit named `kind`, such as `sessions of everything`.
   * @param taken returns the units that this user has in use
   * @param spare units that are kept in reserve
   */
  of(kind: string, total: number, taken: () => number, spare: SpareShare = 'rest-of-block'): LimitTaker {
    const limit = this.#find(kind, spare);
    const close = limit?.addTaker(total, taken);
    return { limit, close: () => close?.() };
  }

  /** Creates a limit of `total` units for each caller. `takenBy` counts what a caller has in use. */
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

  /** Sweeps more often while this replica shuts down, so that units freed here become available to other replicas. */
  beginLeaving(): void {
    this.#stops.push(this.#clock.every(LEAVING_SWEEP_MS, () => this.#sweep()));
  }

  /** Stops the sweeps. Units still held become free for other replicas once this replica has left the cluster. */
  close(): void {
    for (const stop of this.#stops) stop();
  }
}

/** A user of a limit. `limit` is undefined if MAX_LIMITS limits are already tracked. */
export interface LimitTaker {
  readonly limit: SharedLimit | undefined;
  close(): void;
}

/** A limit for each caller. A caller's limit is tracked as long as the caller has units in use. */
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

  /** Reserves a unit for a caller, like `reserve` of SharedLimit. */
  reserve(principal: string): Promise<void> | undefined {
    return this.#of(principal).limit?.reserve();
  }

  /** Returns why the caller gets no further unit, or undefined if it may have one. */
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

  /**
   * Closes takers that are unused, oldest first, up to the first that is in use, which moves to the end. This runs
   * before each addition.
   */
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
 * Returns why nothing is left of a limit, or undefined if something is. `full` means that, as far as this replica
 * knows, the replicas have all of it in use. A full limit starts a reservation in the background, so a client that
 * could not wait, such as one connecting by WebSocket, may succeed when it tries again.
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
