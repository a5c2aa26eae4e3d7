import { randomInt } from 'node:crypto';
import { BridgeError, toBridgeError } from '../../errors.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { StoreEpoch } from '../ownership/members.ts';
import type { StoredRecord } from '../store/store.ts';

export interface SharedLimitOptions {
  /** Name of the limit, the same on all replicas. */
  readonly name: string;
  readonly cluster: Pick<Cluster, 'store' | 'members' | 'peers' | 'self' | 'isHeld'>;
  /**
   * Units kept in reserve beyond those in use: the rest of a block, or a whole block where many reserve but few take a
   * unit.
   */
  readonly spare: SpareShare;
  readonly now: () => number;
}

export type SpareShare = 'rest-of-block' | 'a-block';

/** Units of the limit that a replica holds, as stored. */
interface Share {
  readonly holder: string;
  readonly units: number;
  /** The epoch of the store in which it was written. */
  readonly epoch: string;
}

/** Units are taken one at a time but reserved in blocks, which saves store accesses. */
const BLOCKS = 16;
const MAX_BLOCK = 64;
/** Unused units of a block are given back when none was asked for within this time. */
const SPARE_MS = 3000;
/** An exhausted limit is not checked in the store again within this time. */
const FULL_MS = 500;
/** Limit of write attempts for replicas that write at the same time, of which one succeeds per attempt. */
const MAX_ATTEMPTS = 20;
const KEPT_MS = 24 * 3_600_000;
const REWRITE_MS = 3_600_000;
const FIRST_TOKENS = 2 ** 40;

/**
 * A limit on the total of all replicas. Each replica holds a share and takes no more than that. The share is valid
 * while the replica's lease holds and the store has not lost its records; after that nothing more is taken until both
 * are known again. Shares of dead replicas are free for the others.
 */
export class SharedLimit {
  readonly #options: SharedLimitOptions;
  readonly #takers = new Set<() => number>();
  #total = 0;
  /** Share of this replica. Other replicas may count more units for it than this, but never fewer. */
  #share: Share = NO_SHARE;
  #waiting = 0;
  #updating: Promise<void> | undefined;
  #fullUntilMs = Number.NEGATIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #writtenMs = 0;
  #failure: BridgeError | undefined;

  constructor(options: SharedLimitOptions) {
    this.#options = options;
  }

  /** Adds a user of the limit, whose units in use `taken` returns. Returns a function that removes it. */
  addTaker(total: number, taken: () => number): () => void {
    this.#total = total;
    this.#takers.add(taken);
    return () => void this.#takers.delete(taken);
  }

  get total(): number {
    return this.#total;
  }

  get #taken(): number {
    let sum = 0;
    for (const taken of this.#takers) sum += taken();
    return sum;
  }

  /** Units that this replica may use now: 0 while its lease or its share is in doubt. */
  get held(): number {
    const { cluster } = this.#options;
    const { holder, units, epoch } = this.#share;
    if (holder !== cluster.self.id || !cluster.isHeld) return 0;
    return cluster.members.epoch?.id === epoch ? units : 0;
  }

  get isFull(): boolean {
    return this.#taken >= this.held;
  }

  /** True if no unit is held, in use or waited for here. */
  get isUnused(): boolean {
    return this.#updating === undefined && this.#waiting === 0 && this.#share.units === 0 && this.#taken === 0;
  }

  get hasTakers(): boolean {
    return this.#takers.size > 0;
  }

  /** Returns why units are unavailable, or undefined if the other replicas simply hold the rest. */
  get failure(): BridgeError | undefined {
    const { isHeld, members } = this.#options.cluster;
    if (!isHeld || members.epoch === undefined) return NOT_RELIED_ON;
    if (members.epoch.state === 'settling') return SETTLING;
    return this.#failure;
  }

  /**
   * Call this before taking a unit. Returns undefined if a unit is left, or if the limit was found exhausted a moment
   * ago. Otherwise the promise resolves once more units have been requested from the store, whether or not any were
   * free.
   */
  reserve(): Promise<void> | undefined {
    this.#askedMs = this.#options.now();
    if (this.#taken + this.#waiting < this.held) return undefined;
    if (this.#options.now() < this.#fullUntilMs) return undefined;
    this.#waiting += 1;
    return this.#grow().finally(() => {
      this.#waiting -= 1;
    });
  }

  async #grow(): Promise<void> {
    // An update already under way may not include this reservation.
    if (this.#updating !== undefined) await this.#updating;
    if (this.#taken + this.#waiting <= this.held || this.#options.now() < this.#fullUntilMs) return;
    await this.#update();
    if (this.isFull) this.#fullUntilMs = this.#options.now() + FULL_MS;
  }

  /** Call this several times per lease. It gives back units that are no longer needed, and requests lost ones again. */
  sweep(): void {
    const { cluster, now } = this.#options;
    const { holder, units, epoch } = this.#share;
    const wanted = this.#wanted();
    const current = cluster.members.epoch;
    const isLost = holder !== cluster.self.id || current?.id !== epoch;
    const isOld = units > 0 && now() - this.#writtenMs > REWRITE_MS;
    const lacks = isLost ? wanted > 0 || units > 0 : this.#taken > units;
    if (current !== undefined && (lacks || isOld || units > wanted)) void this.#update();
  }

  /**
   * Stores the share again after the store has lost its records. No replica gets further units until the epoch is
   * settled.
   */
  storeAgain(): void {
    if (this.#share.units > 0) void this.#update();
  }

  #wanted(): number {
    const needed = this.#taken + this.#waiting;
    const block = Math.max(1, Math.min(MAX_BLOCK, Math.floor(this.#total / BLOCKS)));
    const spare = this.#options.spare === 'a-block' ? block : block - 1;
    const isAsked = this.#options.now() - this.#askedMs < SPARE_MS;
    return Math.min(this.#total, needed + (isAsked ? spare : 0));
  }

  #update(): Promise<void> {
    this.#updating ??= this.#write()
      .then(
        () => {
          this.#failure = undefined;
        },
        (thrown: unknown) => {
          this.#failure = toBridgeError(thrown);
        },
      )
      .finally(() => {
        this.#updating = undefined;
      });
    return this.#updating;
  }

  async #write(): Promise<void> {
    const { name, cluster, now } = this.#options;
    const { records } = cluster.store;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const stored = await records.read(name);
      const { epoch } = cluster.members;
      if (epoch === undefined) return;
      const { id } = cluster.self;
      if (tellsOfAnother(stored, epoch) && !(await this.#isStill(epoch))) continue;
      const others = await this.#sharesOfOthers(stored, epoch);
      const free = this.#total - others.reduce((sum, { units }) => sum + units, 0);
      const units = Math.max(0, Math.min(this.#wanted(), free, this.#mostIn(epoch)));
      // Stop using units before the write that lets other replicas take them.
      if (units < this.#share.units) this.#share = { ...this.#share, units };
      const share = { holder: id, units, epoch: epoch.id };
      if (!(await this.#put(stored, units === 0 ? others : [...others, share]))) continue;
      // A store emptied just before this write may have lost other replicas' shares. In that case it now shows another
      // epoch.
      if (units > this.#share.units || epoch.id !== this.#share.epoch) await cluster.members.lookAfresh();
      if (cluster.members.epoch?.id !== epoch.id) continue;
      this.#share = share;
      this.#writtenMs = now();
      return;
    }
  }

  /**
   * Reads the epoch again because a stored share belongs to a different one. Shares of a past epoch are void, but
   * shares of the next epoch, which this replica has not heard of yet, are not. They were written after it began, so
   * reading the epoch after the shares shows it.
   */
  async #isStill({ id }: StoreEpoch): Promise<boolean> {
    const { members } = this.#options.cluster;
    await members.lookAfresh();
    return members.epoch?.id === id;
  }

  /** While the store may have lost other replicas' shares, this replica gets no more units than it already holds. */
  #mostIn(epoch: StoreEpoch): number {
    if (epoch.state === 'settled') return Number.POSITIVE_INFINITY;
    return this.#share.holder === this.#options.cluster.self.id ? this.#share.units : 0;
  }

  async #sharesOfOthers(stored: StoredRecord | undefined, epoch: StoreEpoch): Promise<readonly Share[]> {
    const { peers, self } = this.#options.cluster;
    const valid = parse(stored).filter(
      (share) => share.holder !== self.id && (epoch.state === 'settling' || share.epoch === epoch.id),
    );
    const total = valid.reduce((sum, { units }) => sum + units, 0);
    if (total + this.#wanted() <= this.#total) return valid.filter(({ holder }) => !peers.isDead(holder));
    // This replica needs more units than are left, so check whether the replicas that hold units are still alive.
    const verdicts = await Promise.all(valid.map(({ holder }) => peers.judge(holder)));
    return valid.filter((_, index) => verdicts[index] === 'alive');
  }

  #put(stored: StoredRecord | undefined, shares: readonly Share[]): Promise<boolean> {
    const { name, cluster } = this.#options;
    const token = stored === undefined ? randomInt(1, FIRST_TOKENS) : stored.token + 1;
    const next = { owner: cluster.self.id, token, value: JSON.stringify(shares) };
    return cluster.store.records.put(name, { expected: stored ?? 'absent', next, ttlMs: KEPT_MS });
  }
}

const NO_SHARE: Share = { holder: '', units: 0, epoch: '' };

/** Parses without validation, since replicas alone write sealed records. */
function parse(stored: StoredRecord | undefined): readonly Share[] {
  return stored === undefined ? [] : (JSON.parse(stored.value) as readonly Share[]);
}

/**
 * True if a stored share belongs to another epoch than the given settled one. While an epoch is settling, shares of all
 * epochs count.
 */
function tellsOfAnother(stored: StoredRecord | undefined, { id, state }: StoreEpoch): boolean {
  return state === 'settled' && parse(stored).some((share) => share.epoch !== id);
}

const RETRY = { retryAfterMs: 1000 };
const NOT_RELIED_ON = new BridgeError(
  'ERR_STORE_UNAVAILABLE',
  'This replica has not been able to reach the store for so long that others may have taken its share of --cluster-limits; try again later.',
  RETRY,
);
const SETTLING = new BridgeError(
  'ERR_STORE_UNAVAILABLE',
  'The store has forgotten what the replicas hold of --cluster-limits, and nobody gets more until all have told it again, which takes one --lease; try again later.',
  RETRY,
);
