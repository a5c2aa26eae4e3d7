import { randomInt } from 'node:crypto';
import { BridgeError, toBridgeError } from '../errors.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Cluster } from './cluster.ts';
import type { StoreEpoch } from './members.ts';

export interface SharedLimitOptions {
  /** All replicas know the limit by it. */
  readonly name: string;
  readonly cluster: Pick<Cluster, 'store' | 'members' | 'peers' | 'self' | 'isHeld'>;
  /** What is kept ready beside what is taken: the rest of a block, or a whole one where many ask though few need it. */
  readonly spare: SpareShare;
  readonly now: () => number;
}

export type SpareShare = 'rest-of-block' | 'a-block';

/** What a replica may have of the whole, as the store has it. */
interface Share {
  readonly holder: string;
  readonly units: number;
  /** The epoch of the store in which it was written. */
  readonly epoch: string;
}

/** One unit is taken at a time, but asked for in blocks: the store is not asked for each. */
const BLOCKS = 16;
const MAX_BLOCK = 64;
/** What is left of a block goes back where nobody has asked for it for so long. */
const SPARE_MS = 3000;
/** For this long it is not asked again where there was nothing left. */
const FULL_MS = 500;
/** Replicas that ask at once write one after the other. */
const MAX_ATTEMPTS = 20;
const KEPT_MS = 24 * 3_600_000;
const REWRITE_MS = 3_600_000;
const FIRST_TOKENS = 2 ** 40;

/**
 * A number that all replicas together stay within: each holds a share, and takes no more than that. What it holds is its own
 * for as long as its lease holds and the store remembers what it was told; after that nothing more is taken of it, until
 * both are known again. Shares of dead replicas are free for the others.
 */
export class SharedLimit {
  readonly #options: SharedLimitOptions;
  readonly #takers = new Set<() => number>();
  #total = 0;
  /** What this replica may rely on. Others may believe that it has more, never that it has less. */
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

  /** One more takes of it. @param taken how much it has. Returns what ends that. */
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

  /** What this replica may rely on now. */
  get held(): number {
    const { cluster } = this.#options;
    const { holder, units, epoch } = this.#share;
    if (holder !== cluster.self.id || !cluster.isHeld) return 0;
    return cluster.members.epoch?.id === epoch ? units : 0;
  }

  get isFull(): boolean {
    return this.#taken >= this.held;
  }

  /** Nobody has anything of it here, or waits for it. */
  get isUnused(): boolean {
    return this.#updating === undefined && this.#waiting === 0 && this.#share.units === 0 && this.#taken === 0;
  }

  get hasTakers(): boolean {
    return this.#takers.size > 0;
  }

  /** Why there is nothing left; undefined: the others have it. */
  get failure(): BridgeError | undefined {
    const { isHeld, members } = this.#options.cluster;
    if (!isHeld || members.epoch === undefined) return NOT_RELIED_ON;
    if (members.epoch.state === 'settling') return SETTLING;
    return this.#failure;
  }

  /**
   * To be called before one more is taken. Undefined: there is something left, or it is known that there is not. Otherwise
   * it resolves when the others have been asked, whatever the outcome.
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
    // What is being written may not have counted this one.
    if (this.#updating !== undefined) await this.#updating;
    if (this.#taken + this.#waiting <= this.held || this.#options.now() < this.#fullUntilMs) return;
    await this.#update();
    if (this.isFull) this.#fullUntilMs = this.#options.now() + FULL_MS;
  }

  /** To be called several times a lease: gives back what is not needed, and asks again for what was lost. */
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

  /** The store may have forgotten the share: it is stored again while nobody else takes anything. */
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
      // What is given back is not relied on from before others may see it.
      if (units < this.#share.units) this.#share = { ...this.#share, units };
      const share = { holder: id, units, epoch: epoch.id };
      if (!(await this.#put(stored, units === 0 ? others : [...others, share]))) continue;
      // A store that was emptied just before may have forgotten what others hold: then it shows another epoch now.
      if (units > this.#share.units || epoch.id !== this.#share.epoch) await cluster.members.lookAfresh();
      if (cluster.members.epoch?.id !== epoch.id) continue;
      this.#share = share;
      this.#writtenMs = now();
      return;
    }
  }

  /**
   * Shares of another epoch are nobody's any more, unless it is the next one, of which this replica has not heard yet: they
   * were written after it began, so a look after they were read shows it.
   */
  async #isStill({ id }: StoreEpoch): Promise<boolean> {
    const { members } = this.#options.cluster;
    await members.lookAfresh();
    return members.epoch?.id === id;
  }

  /** As long as the store may have forgotten what others hold, there is no more than there was. */
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
    // Whoever lacks something looks whether those live who have it.
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

/** A replica has written it. */
function parse(stored: StoredRecord | undefined): readonly Share[] {
  return stored === undefined ? [] : (JSON.parse(stored.value) as readonly Share[]);
}

/** As long as an epoch settles, all shares count, whatever they are of. */
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
