import type { Clock } from '../deps.ts';
import type { Ownership } from '../store/store.ts';
import type { Cluster } from './cluster.ts';
import type { Owner } from './owner-tags.ts';

/**
 * Longer than an idle session of a server is kept for its caller, so that whoever comes back finds it; and twice as long as a
 * call may take, since what was used last when half of it was left is not renewed.
 */
const OWNED_MS = 65 * 60_000;
/** What is known of others is asked for again after this, or when it turns out to be wrong. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;
/** Two replicas that want the same caller: one of them gets it, and the other learns that. */
const MAX_ATTEMPTS = 5;

type Known =
  | { readonly kind: 'self'; readonly ownership: Ownership; untilMs: number; isRenewing: boolean }
  | { readonly kind: 'other'; readonly owner: Owner; readonly untilMs: number };

/**
 * Which replica serves a caller that has no session: all its calls go to one, where the sessions with a server are that were
 * opened for it, and what the server remembers in them. Whoever is called first has it.
 */
export class CallerOwners {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  /** Least recently used first. */
  readonly #known = new Map<string, Known>();

  constructor(cluster: Cluster, clock: Clock) {
    this.#cluster = cluster;
    this.#clock = clock;
    cluster.onLost(() => this.#known.clear());
    cluster.members.onNewEpoch(() => void this.#tellAgain());
  }

  /** As far as is known without asking; undefined: ask. */
  find(name: string): Owner | 'self' | undefined {
    const known = this.#known.get(name);
    const nowMs = this.#clock.now();
    if (known === undefined || known.untilMs <= nowMs) return undefined;
    if (known.kind === 'other') return known.owner;
    if (known.untilMs - nowMs < OWNED_MS / 2) void this.#renew(name, known);
    return 'self';
  }

  /** Rejects with ERR_STORE_UNAVAILABLE. */
  async claim(name: string): Promise<Owner | 'self'> {
    const { store, self, peers } = this.#cluster;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const stored = await store.records.read(name);
      const isOurs = stored?.owner === self.id;
      if (stored !== undefined && !isOurs && (await peers.judge(stored.owner)) === 'alive') {
        const owner = { id: stored.owner, address: stored.value };
        this.#remember(name, { kind: 'other', owner, untilMs: this.#clock.now() + KNOWN_MS });
        return owner;
      }
      const token = stored === undefined ? 1 : isOurs ? stored.token : stored.token + 1;
      const next = { owner: self.id, token, value: self.address };
      const untilMs = this.#clock.now() + OWNED_MS;
      if (await store.records.put(name, { expected: stored ?? 'absent', next, ttlMs: OWNED_MS })) {
        this.#remember(name, { kind: 'self', ownership: next, untilMs, isRenewing: false });
        return 'self';
      }
    }
    throw new Error('an owner changes faster than it can be asked for');
  }

  /** It was not there. */
  forget(name: string): void {
    this.#known.delete(name);
  }

  /** The store has forgotten whose they are. One after the other: calls need the store, too. */
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
      // The next call that comes late in its time tries again.
    } finally {
      known.isRenewing = false;
    }
  }

  #remember(name: string, known: Known): void {
    this.#known.delete(name);
    this.#known.set(name, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) return;
      this.#known.delete(oldest);
    }
  }
}
