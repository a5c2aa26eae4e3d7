import type { Clock } from '../../deps.ts';
import type { Cluster } from '../ownership/cluster.ts';

export interface SharedVerdictOptions {
  readonly cluster: Pick<Cluster, 'store' | 'self'>;
  /** Name and address of the server, the same on all replicas. */
  readonly server: string;
  /** True once this replica itself has found the server to be modern. */
  readonly isKnown: () => boolean;
  readonly clock: Clock;
}

/** Time to live of a verdict that no replica renews. The server may have been replaced by then. */
const KEPT_MS = 10 * 60_000;
/** Interval at which replicas that have found the verdict themselves renew it, while the server is called. */
const RENEW_MS = 3 * 60_000;
/** Time for which a verdict from the store is used before it is read again. */
const RELIED_ON_MS = 60_000;
/** Interval at which the store is read while it has no verdict, as long as the server is called. */
const LOOK_AGAIN_MS = 5000;

/**
 * Shares the verdict that a server is modern, which one replica reaches by calling it. Modern servers keep no state, so
 * any replica may serve calls to them, but a replica that forwards all its calls would not find that out by itself. A
 * wrong verdict affects only which replica serves a call: each replica speaks to the server as its own detection
 * decided.
 */
export class SharedVerdict {
  readonly #options: SharedVerdictOptions;
  readonly #name: string;
  #isStored = false;
  #lookAgainMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #tellAgainMs = Number.NEGATIVE_INFINITY;

  constructor(options: SharedVerdictOptions) {
    this.#options = options;
    this.#name = `modern server ${options.server}`;
  }

  get isModern(): boolean {
    return this.#isStored || this.#options.isKnown();
  }

  /** Await this before reading `isModern`. Returns undefined if there is nothing to wait for. Never rejects. */
  look(): Promise<void> | undefined {
    if (this.#options.isKnown()) {
      this.#tell();
      return undefined;
    }
    if (this.#options.clock.now() < this.#lookAgainMs) return undefined;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { cluster, clock } = this.#options;
    // Without the store the server is treated as legacy, so its calls stay with one replica.
    const stored = await cluster.store.records.read(this.#name).catch(() => undefined);
    this.#isStored = stored !== undefined;
    this.#lookAgainMs = clock.now() + (this.#isStored ? RELIED_ON_MS : LOOK_AGAIN_MS);
  }

  /** Stores the verdict for the other replicas, in the background. */
  #tell(): void {
    const nowMs = this.#options.clock.now();
    if (nowMs < this.#tellAgainMs) return;
    this.#tellAgainMs = nowMs + RENEW_MS;
    this.#write().catch(() => {
      this.#tellAgainMs = nowMs + LOOK_AGAIN_MS;
    });
  }

  /** Writes once without a retry: if another replica writes first, it stores the same verdict. */
  async #write(): Promise<void> {
    const { store, self } = this.#options.cluster;
    const stored = await store.records.read(this.#name);
    const next = { owner: self.id, token: (stored?.token ?? 0) + 1, value: 'modern' };
    await store.records.put(this.#name, { expected: stored ?? 'absent', next, ttlMs: KEPT_MS });
  }
}
