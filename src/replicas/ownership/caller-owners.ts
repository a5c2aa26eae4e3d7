import { RecentNames } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import type { Ownership } from '../store/store.ts';
import type { Cluster } from './cluster.ts';
import type { Owner } from './owner-tags.ts';

/**
 * Time for which a replica stays the owner of a caller. This exceeds the time an idle server session is kept for its
 * caller, so a caller that returns reaches its session. It is also twice the longest duration of a call, because
 * ownership is renewed only once half of it has passed.
 */
const OWNED_MS = 65 * 60_000;
/**
 * Time for which a known owner other than this replica is used before the store is read again. `forget` drops it
 * earlier when it proves wrong.
 */
const KNOWN_MS = 60_000;
/** Bounds of the known owners, which clients can be many of. */
const KNOWN_LIMITS = { count: 10_000, length: 5_000_000 };
/**
 * Limit of attempts for replicas that claim the same caller at once. One write succeeds, and the others then read the
 * new owner.
 */
const MAX_ATTEMPTS = 5;

type Known =
  | { readonly kind: 'self'; readonly ownership: Ownership; untilMs: number; isRenewing: boolean }
  | { readonly kind: 'other'; readonly owner: Owner; readonly untilMs: number };

/**
 * Finds the replica that serves a caller without a session. All calls of such a caller go to one owner, which holds the
 * server sessions opened for it and what the server remembers in them. The first replica called becomes the owner.
 */
export class CallerOwners {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #known = new RecentNames<Known>(KNOWN_LIMITS);

  constructor(cluster: Cluster, clock: Clock) {
    this.#cluster = cluster;
    this.#clock = clock;
    cluster.onLost(() => this.#known.clear());
    cluster.members.onNewEpoch(() => void this.#tellAgain());
  }

  /** Looks only at what this replica knows. Returns undefined if the store has to be read; then call `claim`. */
  find(name: string): Owner | 'here' | undefined {
    const known = this.#known.get(name);
    const nowMs = this.#clock.now();
    if (known === undefined || known.untilMs <= nowMs) return undefined;
    if (known.kind === 'other') return known.owner;
    if (known.untilMs - nowMs < OWNED_MS / 2) void this.#renew(name, known);
    return 'here';
  }

  /**
   * Reads the owner from the store, and takes the caller over if it has none or if its owner is dead. Rejects with
   * ERR_STORE_UNAVAILABLE.
   */
  async claim(name: string): Promise<Owner | 'here'> {
    const { store, self, peers } = this.#cluster;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const stored = await store.records.read(name);
      const isOurs = stored?.owner === self.id;
      if (stored !== undefined && !isOurs && (await peers.judge(stored.owner)) === 'alive') {
        const owner = { id: stored.owner, address: stored.value };
        this.#known.set(name, { kind: 'other', owner, untilMs: this.#clock.now() + KNOWN_MS });
        return owner;
      }
      const token = stored === undefined ? 1 : isOurs ? stored.token : stored.token + 1;
      const next = { owner: self.id, token, value: self.address };
      const untilMs = this.#clock.now() + OWNED_MS;
      if (await store.records.put(name, { expected: stored ?? 'absent', next, ttlMs: OWNED_MS })) {
        this.#known.set(name, { kind: 'self', ownership: next, untilMs, isRenewing: false });
        return 'here';
      }
    }
    throw new Error('an owner changes faster than it can be asked for');
  }

  /** Call this when the owner returned by `find` or `claim` turns out not to serve the caller. */
  forget(name: string): void {
    this.#known.delete(name);
  }

  /**
   * Stores all owned callers again after the store has lost its records. Writes are sequential, because calls need the
   * store at the same time.
   */
  async #tellAgain(): Promise<void> {
    for (const [name, known] of [...this.#known]) {
      if (known.kind === 'self' && this.#known.get(name) === known) await this.#renew(name, known, 'absent');
    }
  }

  async #renew(
    name: string,
    known: Extract<Known, { kind: 'self' }>,
    expected: Ownership | 'absent' = known.ownership,
  ): Promise<void> {
    if (known.isRenewing) return;
    known.isRenewing = true;
    const { store, self } = this.#cluster;
    const untilMs = this.#clock.now() + OWNED_MS;
    const next = { ...known.ownership, value: self.address };
    try {
      const isOurs = await store.records.put(name, { expected, next, ttlMs: OWNED_MS });
      if (isOurs) known.untilMs = untilMs;
      else this.#known.delete(name);
    } catch {
      // The next call in the second half of the ownership period tries again.
    } finally {
      known.isRenewing = false;
    }
  }
}
