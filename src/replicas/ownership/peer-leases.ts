import { RecentNames } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import type { LeaseReading, LeaseStore } from '../store/store.ts';

export interface PeerLeasesOptions {
  readonly leases: LeaseStore;
  /** Duration of a lease without renewal, the same on all replicas. */
  readonly ttlMs: number;
  readonly clock: Clock;
}

interface WatchedPeer {
  /** The store's latest reading, undefined before the first, and the time since which it has been unchanged. */
  reading: LeaseReading | undefined;
  sinceMs: number;
  /** When a caller last asked for this peer. */
  askedMs: number;
  looking: Promise<LeaseVerdict> | undefined;
}

export type LeaseVerdict = 'alive' | 'dead';

/** Limit of watched peers. A cluster has fewer, including replicas that have left. */
const MAX_WATCHED = 1000;
const DEAD_LIMITS = { count: 10_000, length: 1_000_000 };
/** Deaths reported again to a store that lost its records. Replicas still running are interested in fewer. */
const MAX_TOLD_AGAIN = 100;
/** Readings within the time for which a peer may be silent. */
const LOOKS = 6;
/** A peer is no longer watched when no caller has asked for it for this many leases. */
const WATCHED_FOR = 40;

/**
 * Decides whether other replicas are alive. A replica is dead once its sign of life has not changed for a whole lease
 * by the local clock and the store has recorded its death. A dead replica stays dead.
 */
export class PeerLeases {
  readonly #options: PeerLeasesOptions;
  readonly #watched = new Map<string, WatchedPeer>();
  readonly #dead = new RecentNames<true>(DEAD_LIMITS);
  #stopTimer: (() => void) | undefined;

  constructor(options: PeerLeasesOptions) {
    this.#options = options;
  }

  /** True if the peer is known to be dead, without reading the store. */
  isDead(holder: string): boolean {
    return this.#dead.has(holder);
  }

  /** Starts to watch a peer whose death may matter soon, so that the death is noticed as early as possible. */
  watch(holder: string): void {
    if (this.#dead.has(holder)) return;
    const { clock, ttlMs } = this.#options;
    const known = this.#watched.get(holder);
    if (known !== undefined) known.askedMs = clock.now();
    else if (this.#watched.size < MAX_WATCHED) {
      const nowMs = clock.now();
      this.#watched.set(holder, { reading: undefined, sinceMs: nowMs, askedMs: nowMs, looking: undefined });
      this.#stopTimer ??= clock.every(ttlMs / LOOKS, () => this.#lookAtAll());
      void this.judge(holder).catch(() => undefined);
    }
  }

  /** Reads the store. Rejects with ERR_STORE_UNAVAILABLE. */
  async judge(holder: string): Promise<LeaseVerdict> {
    if (this.#dead.has(holder)) return 'dead';
    this.watch(holder);
    const peer = this.#watched.get(holder);
    if (peer === undefined) return 'alive';
    peer.looking ??= this.#look(holder, peer).finally(() => {
      peer.looking = undefined;
    });
    return peer.looking;
  }

  async #look(holder: string, peer: WatchedPeer): Promise<LeaseVerdict> {
    const { leases, clock, ttlMs } = this.#options;
    const reading = await leases.read(holder);
    // Time of the reply, not of the request: the reading is older than its reply, so no peer is declared dead too
    // early.
    const nowMs = clock.now();
    if (peer.reading === undefined || !isSame(reading, peer.reading)) {
      peer.reading = reading;
      peer.sinceMs = nowMs;
    }
    if (reading.kind !== 'dead' && nowMs - peer.sinceMs < ttlMs) return 'alive';
    if ((await leases.condemn(holder, reading)) === 'alive') return 'alive';
    this.#dead.set(holder, true);
    this.#watched.delete(holder);
    return 'dead';
  }

  /**
   * Reports deaths again to a store that lost its records. A replica that was only cut off must not continue with what
   * others may have taken over.
   */
  tellAgain(): void {
    for (const holder of this.#dead.latest(MAX_TOLD_AGAIN)) {
      this.#options.leases.release(holder).catch(() => undefined);
    }
  }

  #lookAtAll(): void {
    const { clock, ttlMs } = this.#options;
    const nowMs = clock.now();
    for (const [holder, { askedMs }] of this.#watched) {
      if (nowMs - askedMs > WATCHED_FOR * ttlMs) this.#watched.delete(holder);
      else this.#lookAgain(holder);
    }
    if (this.#watched.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  /** Reads the peer again without updating `askedMs`, so that a peer no caller asks for is eventually forgotten. */
  #lookAgain(holder: string): void {
    const peer = this.#watched.get(holder);
    if (peer === undefined) return;
    peer.looking ??= this.#look(holder, peer).finally(() => {
      peer.looking = undefined;
    });
    peer.looking.catch(() => undefined);
  }

  close(): void {
    this.#stopTimer?.();
    this.#watched.clear();
  }
}

function isSame(one: LeaseReading, other: LeaseReading): boolean {
  return one.kind === 'sign' && other.kind === 'sign' ? one.sign === other.sign : one.kind === other.kind;
}
