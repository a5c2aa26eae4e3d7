import { randomInt } from 'node:crypto';
import type { Clock } from '../deps.ts';
import type { Store, StoredRecord } from '../store/store.ts';
import type { Owner } from './owner-tags.ts';
import type { PeerLeases } from './peer-leases.ts';

export interface MembersOptions {
  readonly store: Store;
  readonly peers: PeerLeases;
  readonly leaseMs: number;
  /** What this replica is called now; another after its lease was lost. */
  readonly self: () => Owner;
  readonly clock: Clock;
  /** Time of day. A machine that sleeps stops the other clock. */
  readonly wallClock: () => number;
  readonly randomId: () => string;
}

/**
 * The memory of the store, from when it knew nothing until it knows nothing again.
 * - `settling`: it may have forgotten what others still rely on. Whoever relies on something has to store it again.
 * - `settled`: that was so for a whole lease. What is not in the store is nobody's.
 */
export interface StoreEpoch {
  readonly id: string;
  readonly state: 'settling' | 'settled';
}

interface MembersRecord {
  readonly epoch: StoreEpoch;
  readonly members: readonly Owner[];
}

/** More replicas than a cluster has. */
const MAX_MEMBERS = 1000;
const RECORD = 'members';
/** Far longer than between two writes. */
const KEPT_MS = 24 * 3_600_000;
const REWRITE_MS = 3_600_000;
/** Looks within a lease; of those within the time that is relied on some may fail. */
const LOOKS = 6;
/** As of a replica's own lease: the rest is for what is slow between two machines. */
const RELIED_ON = 2 / 3;
/** Replicas that start at once write one after the other. */
const MAX_ATTEMPTS = 20;
/** Tokens begin anywhere, so that those of a record that was lost are not met again. */
const FIRST_TOKENS = 2 ** 40;

/** Which replicas there are, as they say themselves, and since when the store remembers what it is told. */
export class Members {
  readonly #options: MembersOptions;
  #epoch: StoreEpoch | undefined;
  /** When the reply came that showed this epoch first, and when the last question was sent that it answered. */
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

  /** Rejects with ERR_STORE_UNAVAILABLE. */
  async start(): Promise<void> {
    await this.look();
    const { clock, leaseMs } = this.#options;
    this.#stopTimer = clock.every(leaseMs / LOOKS, () => void this.look().catch(() => undefined));
  }

  /** What the store is known to remember now; undefined: it was not asked for so long that this may have changed. */
  get epoch(): StoreEpoch | undefined {
    const { clock, wallClock, leaseMs } = this.#options;
    const passedMs = Math.max(clock.now() - this.#sentMs, wallClock() - this.#sentWallMs);
    return passedMs < leaseMs * RELIED_ON ? this.#epoch : undefined;
  }

  /** Resolves as soon as what is not in the store is nobody's: at once but for the first replicas of a cluster. */
  settled(): Promise<void> {
    if (this.#epoch?.state === 'settled') return Promise.resolve();
    return new Promise((resolve) => this.#settled.add(resolve));
  }

  /** Called when the store has forgotten what it was told. Returns what stops that. */
  onNewEpoch(run: () => void): () => void {
    this.#onNewEpoch.add(run);
    return () => void this.#onNewEpoch.delete(run);
  }

  /** The others that are not known to be dead. Rejects with ERR_STORE_UNAVAILABLE. */
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

  /** What it shows was so after this was called. */
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
      // It has been seen for a whole lease by this replica's own clock, so what others relied on before has run out.
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

  /** The others need not ask this replica any more. */
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

/** A replica has written it. */
function parse(stored: StoredRecord | undefined): MembersRecord | undefined {
  return stored === undefined ? undefined : (JSON.parse(stored.value) as MembersRecord);
}
