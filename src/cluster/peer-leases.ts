import { RecentNames } from '../collections/bounded-collections.ts';
import type { Clock } from '../deps.ts';
import type { LeaseReading, LeaseStore } from '../store/store.ts';

export interface PeerLeasesOptions {
  readonly leases: LeaseStore;
  /** How long a lease lasts that is not renewed; all replicas agree on it. */
  readonly ttlMs: number;
  readonly clock: Clock;
}

interface WatchedPeer {
  /** What the store has said last, and since when it has been saying so; undefined: nothing yet. */
  reading: LeaseReading | undefined;
  sinceMs: number;
  /** When anybody wanted to know. */
  askedMs: number;
  looking: Promise<LeaseVerdict> | undefined;
}

export type LeaseVerdict = 'alive' | 'dead';

/** More replicas than a cluster has, for those that have come and gone. */
const MAX_WATCHED = 1000;
const DEAD_LIMITS = { count: 10_000, length: 1_000_000 };
/** Deaths that a store is told again: more than are of interest to a replica that is still there. */
const MAX_TOLD_AGAIN = 100;
/** Looks within the time that a peer may be silent for. */
const LOOKS = 6;
/** A peer that nobody has asked for is not looked at for longer than this many times that time. */
const WATCHED_FOR = 40;

/**
 * Whether other replicas live. One is dead when its sign has stood unchanged for as long as it may be silent, by the clock
 * of this replica alone, and the store has been told so. It stays dead.
 */
export class PeerLeases {
  readonly #options: PeerLeasesOptions;
  readonly #watched = new Map<string, WatchedPeer>();
  readonly #dead = new RecentNames<true>(DEAD_LIMITS);
  #stopTimer: (() => void) | undefined;

  constructor(options: PeerLeasesOptions) {
    this.#options = options;
  }

  /** As far as is known without asking. */
  isDead(holder: string): boolean {
    return this.#dead.has(holder);
  }

  /** It may matter soon whether this one lives: the sooner it is looked at, the sooner its death is known. */
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

  /** Rejects with ERR_STORE_UNAVAILABLE. */
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
    // When the reply is here: what it shows was there before, so nobody is waited for too briefly.
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

  /** The store has forgotten who is dead. One that was only cut off must not go on with what it is said to have left. */
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

  /** To look is not to ask for it: one that nobody asks for is forgotten. */
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
