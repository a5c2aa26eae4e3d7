import { randomInt } from 'node:crypto';
import type { Clock } from '../../deps.ts';
import type { Store, StoredRecord } from '../store/store.ts';
import type { Owner } from './owner-tags.ts';
import type { PeerLeases } from './peer-leases.ts';

export interface MembersOptions {
  readonly store: Store;
  readonly peers: PeerLeases;
  readonly leaseMs: number;
  /** Current identity of this replica. It changes when the lease is lost. */
  readonly self: () => Owner;
  readonly clock: Clock;
  /** Time of day. A sleeping machine stops the monotonic clock. */
  readonly wallClock: () => number;
  readonly randomId: () => string;
}

/**
 * Period from an empty store until the store loses its records again.
 * - `settling`: the store may have lost records that other replicas still rely on, and these have to store them again.
 * - `settled`: the epoch has been settling for a whole lease. Anything without a record now has no owner.
 */
export interface StoreEpoch {
  readonly id: string;
  readonly state: 'settling' | 'settled';
}

interface MembersRecord {
  readonly epoch: StoreEpoch;
  readonly members: readonly Owner[];
}

/** A cluster has fewer replicas than this. */
const MAX_MEMBERS = 1000;
const RECORD = 'members';
/** Time to live of the record, far longer than REWRITE_MS. */
const KEPT_MS = 24 * 3_600_000;
const REWRITE_MS = 3_600_000;
/** Reads of the record per lease. Some of the reads within the relied-on time may fail. */
const LOOKS = 6;
/**
 * Fraction of a lease for which the last reading is relied on, as with a replica's own lease. The rest allows for
 * delays between two machines.
 */
const RELIED_ON = 2 / 3;
/** Limit of write attempts for replicas that start at the same time, of which one succeeds per attempt. */
const MAX_ATTEMPTS = 20;
/** The first token of a record is random, so that a recreated record does not repeat tokens of a lost one. */
const FIRST_TOKENS = 2 ** 40;

/** The replicas of the cluster, as each of them registers itself, and the current epoch of the store. */
export class Members {
  readonly #options: MembersOptions;
  #epoch: StoreEpoch | undefined;
  /**
   * `sinceMs` is when the reply arrived that first showed this epoch. `sentMs` and `sentWallMs` are when the latest
   * answered request was sent.
   */
  #sinceMs = 0;
  #sentMs = 0;
  #sentWallMs = 0;
  #writtenMs = 0;
  #looking: Promise<void> | undefined;
  #stopTimer: () => void = () => {};
  #isClosed = false;
  readonly #settled = new Set<() => void>();
  readonly #onNewEpoch = new Set<() => void>();

  constructor(options: MembersOptions) {
    this.#options = options;
  }

  /** Registers this replica and keeps reading the record. Rejects with ERR_STORE_UNAVAILABLE. */
  async start(): Promise<void> {
    await this.look();
    const { clock, leaseMs } = this.#options;
    this.#stopTimer = clock.every(leaseMs / LOOKS, () => void this.look().catch(() => undefined));
  }

  /** The epoch of the store, or undefined if the last reading is too old to be relied on. */
  get epoch(): StoreEpoch | undefined {
    const { clock, wallClock, leaseMs } = this.#options;
    const passedMs = Math.max(clock.now() - this.#sentMs, wallClock() - this.#sentWallMs);
    return passedMs < leaseMs * RELIED_ON ? this.#epoch : undefined;
  }

  /** Resolves once the epoch is settled, which is immediate except for the first replicas of a cluster. */
  settled(): Promise<void> {
    if (this.#epoch?.state === 'settled') return Promise.resolve();
    return new Promise((resolve) => this.#settled.add(resolve));
  }

  /** Calls `run` when the store has lost its records. Returns a function that unsubscribes. */
  onNewEpoch(run: () => void): () => void {
    this.#onNewEpoch.add(run);
    return () => void this.#onNewEpoch.delete(run);
  }

  /**
   * Returns the other replicas that are not known to be dead, and removes dead ones from the record. Rejects with
   * ERR_STORE_UNAVAILABLE.
   */
  async others(): Promise<readonly Owner[]> {
    const { store, peers, self } = this.#options;
    const record = parse(await store.records.read(RECORD));
    const others = (record?.members ?? []).filter(({ id }) => id !== self().id);
    const alive = await Promise.all(others.map(async ({ id }) => (await peers.judge(id)) === 'alive'));
    const gone = new Set(others.filter((_, index) => alive[index] === false).map(({ id }) => id));
    if (gone.size > 0) await this.#change((members) => members.filter(({ id }) => !gone.has(id)));
    return others.filter(({ id }) => !gone.has(id));
  }

  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Reads the record with a request sent after this call; a read already under way does not count. */
  async lookAfresh(): Promise<void> {
    await this.#looking?.catch(() => undefined);
    await this.look();
  }

  async #look(): Promise<void> {
    const { store, self, clock, wallClock, leaseMs } = this.#options;
    const sent = { ms: clock.now(), wallMs: wallClock() };
    const record = parse(await store.records.read(RECORD));
    if (this.#isClosed) return;
    const isListed = record?.members.some(({ id }) => id === self().id) === true;
    if (record !== undefined) this.#seen(record.epoch, sent);
    const nowMs = clock.now();
    const isSettled = record?.epoch.state === 'settling' && nowMs - this.#sinceMs >= leaseMs;
    if (isListed && !isSettled && nowMs - this.#writtenMs < REWRITE_MS) return;
    await this.#change((members) => {
      const { id, address } = self();
      return [...members.filter((member) => member.address !== address && member.id !== id), { id, address }];
    });
  }

  #seen(epoch: StoreEpoch, sent: { readonly ms: number; readonly wallMs: number }): void {
    const before = this.#epoch;
    this.#epoch = epoch;
    this.#sentMs = sent.ms;
    this.#sentWallMs = sent.wallMs;
    if (before?.id !== epoch.id) this.#sinceMs = this.#options.clock.now();
    if (before !== undefined && before.id !== epoch.id) for (const run of [...this.#onNewEpoch]) run();
    if (epoch.state !== 'settled') return;
    for (const resolve of this.#settled) resolve();
    this.#settled.clear();
  }

  async #change(change: (members: readonly Owner[]) => readonly Owner[]): Promise<void> {
    const { store, self, clock, wallClock, leaseMs, randomId } = this.#options;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const sent = { ms: clock.now(), wallMs: wallClock() };
      const stored = await store.records.read(RECORD);
      if (this.#isClosed) return;
      const record = parse(stored) ?? { epoch: { id: randomId(), state: 'settling' as const }, members: [] };
      // This replica has seen the epoch for a whole lease by its own clock, so leases from before the epoch have
      // expired.
      const isSettled = record.epoch.id === this.#epoch?.id && clock.now() - this.#sinceMs >= leaseMs;
      const epoch: StoreEpoch = isSettled ? { id: record.epoch.id, state: 'settled' } : record.epoch;
      const members = change(record.members).slice(-MAX_MEMBERS);
      const next = {
        owner: self().id,
        token: stored === undefined ? randomInt(1, FIRST_TOKENS) : stored.token + 1,
        value: JSON.stringify({ epoch, members } satisfies MembersRecord),
      };
      if (!(await store.records.put(RECORD, { expected: stored ?? 'absent', next, ttlMs: KEPT_MS }))) continue;
      this.#writtenMs = clock.now();
      return this.#seen(epoch, sent);
    }
  }

  /** Removes this replica from the record, so that others no longer query it. */
  async leave(): Promise<void> {
    const { id } = this.#options.self();
    await this.#change((members) => members.filter((member) => member.id !== id));
    this.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer();
  }
}

/** Parses without validation, since replicas alone write sealed records. */
function parse(stored: StoredRecord | undefined): MembersRecord | undefined {
  return stored === undefined ? undefined : (JSON.parse(stored.value) as MembersRecord);
}
