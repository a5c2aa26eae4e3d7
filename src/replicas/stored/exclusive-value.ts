import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { PeerLeases } from '../ownership/peer-leases.ts';
import type { Ownership, StoredRecord } from '../store/store.ts';
import { NOBODY } from './session-records.ts';

/** Time to live of the record. An unchanged value is of no use after this time. */
const KEPT_MS = 90 * 24 * 3_600_000;
/** Interval at which a waiting replica checks whether the turn is free. */
const LOOK_MS = 250;
/** A turn held longer than this is taken over, because a live replica needs less: its holder could not give it back. */
export const MAX_TURN_MS = 5 * 60_000;
/**
 * Longest wait for a turn. It exceeds one turn, so a replica that waits this long was behind several turns in a row.
 */
export const MAX_WAIT_MS = MAX_TURN_MS + 60_000;
/** Delay before the next attempt to give back a turn, when the store could not be reached. */
const GIVE_BACK_MS = 1000;
const GIVE_BACK_ATTEMPTS = 30;
const EMPTY = '';

export interface ExclusiveValueOptions {
  readonly cluster: Pick<Cluster, 'store' | 'self' | 'isHeld'> & { readonly peers: Pick<PeerLeases, 'judge'> };
  readonly name: string;
  readonly clock: Clock;
}

/**
 * A text shared by all replicas that only one of them at a time may change. The owner of its record in the store holds
 * the turn. The token increases with each turn, so a replica that has lost its turn without noticing cannot overwrite
 * later changes.
 */
export class ExclusiveValue {
  readonly #options: ExclusiveValueOptions;
  #value: string | undefined;
  #turn: Ownership | undefined;

  constructor(options: ExclusiveValueOptions) {
    this.#options = options;
  }

  /** The value as last read or set by this replica. */
  get value(): string | undefined {
    return this.#value;
  }

  /** Reads the value from the store. Rejects with ERR_STORE_UNAVAILABLE. */
  async look(): Promise<void> {
    await this.#read();
  }

  async #read(): Promise<StoredRecord | undefined> {
    const stored = await this.#options.cluster.store.records.read(this.#options.name);
    this.#value = stored === undefined || stored.value === EMPTY ? undefined : stored.value;
    return stored;
  }

  /**
   * Runs `work` with the latest value while no other replica has the turn. Rejects with ERR_STORE_UNAVAILABLE or
   * ERR_CLUSTER_TURN if the turn could not be had; `work` did not run then.
   */
  async exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#turn = await this.#takeTurn();
    try {
      return await work();
    } finally {
      void this.#giveBack(this.#turn, GIVE_BACK_ATTEMPTS);
      this.#turn = undefined;
    }
  }

  async #takeTurn(): Promise<Ownership> {
    const { cluster, clock } = this.#options;
    let waitedFor: Ownership | undefined;
    const beganMs = clock.now();
    let sinceMs = beganMs;
    for (;;) {
      const stored = await this.#read();
      if (!cluster.isHeld) throw NOT_A_MEMBER;
      const isSame = stored !== undefined && isSameTurn(stored, waitedFor);
      if (!isSame) sinceMs = clock.now();
      waitedFor = stored;
      const isOver = isSame && clock.now() - sinceMs > MAX_TURN_MS;
      if (isOver || (await this.#isFree(stored))) {
        const next = { owner: cluster.self.id, token: (stored?.token ?? 0) + 1, value: stored?.value ?? EMPTY };
        if (await this.#put(stored ?? 'absent', next)) return { owner: next.owner, token: next.token };
        continue;
      }
      if (clock.now() - beganMs > MAX_WAIT_MS) throw TOO_LONG;
      await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve));
    }
  }

  async #isFree(stored: StoredRecord | undefined): Promise<boolean> {
    if (stored === undefined || stored.owner === NOBODY) return true;
    return (await this.#options.cluster.peers.judge(stored.owner)) === 'dead';
  }

  /**
   * Stores a new value. If this replica has lost its turn meanwhile, the value is stored only if no other replica has
   * changed it since: it is then the newest, and the holder of the turn learns of it.
   */
  async set(value: string | undefined): Promise<void> {
    const { records } = this.#options.cluster.store;
    const next = { ...(this.#turn ?? { owner: NOBODY, token: 0 }), value: value ?? EMPTY };
    const before = this.#value ?? EMPTY;
    // Set before the write, so that a turn that ends meanwhile is given back with this value.
    this.#value = value;
    if (this.#turn === undefined || !(await this.#put(this.#turn, next))) {
      const stored = await records.read(this.#options.name);
      const isNews = stored === undefined || stored.value === before;
      if (isNews) await this.#put(stored ?? 'absent', { ...(stored ?? next), value: next.value });
      else this.#value = stored.value;
    }
  }

  async #giveBack(turn: Ownership, attempts: number): Promise<void> {
    const next = { owner: NOBODY, token: turn.token, value: this.#value ?? EMPTY };
    try {
      await this.#put(turn, next);
    } catch {
      if (attempts === 0) return;
      this.#options.clock.after(GIVE_BACK_MS, () => void this.#giveBack(turn, attempts - 1));
    }
  }

  #put(expected: Ownership | 'absent', next: StoredRecord): Promise<boolean> {
    return this.#options.cluster.store.records.put(this.#options.name, { expected, next, ttlMs: KEPT_MS });
  }
}

function isSameTurn(one: Ownership, other: Ownership | undefined): boolean {
  return one.owner === other?.owner && one.token === other.token;
}

const TOO_LONG = new BridgeError(
  'ERR_CLUSTER_TURN',
  `Other replicas have been changing what all of them share, such as a login, for ${MAX_WAIT_MS / 60_000} minutes, one after the other; nothing was done here, try again later.`,
  { retryAfterMs: 30_000 },
);
const NOT_A_MEMBER = new BridgeError(
  'ERR_STORE_UNAVAILABLE',
  'This replica has not been able to reach the store for a while, so it changes nothing that replicas share; try again later.',
  { retryAfterMs: 1000 },
);
