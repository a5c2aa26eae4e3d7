import type { Deps } from '../deps.ts';
import { toBridgeError } from '../errors.ts';
import type { ClusterKey } from '../store/cluster-key.ts';
import type { Store } from '../store/store.ts';
import { LinkSecrets } from './link-secrets.ts';
import { Members } from './members.ts';
import { type Owner, OwnerTags } from './owner-tags.ts';
import { PeerLeases } from './peer-leases.ts';
import { ReplicaLease } from './replica-lease.ts';

export interface ClusterOptions {
  readonly store: Store;
  readonly key: ClusterKey;
  /** Where the others reach this replica. */
  readonly address: string;
  /** After this much silence of a replica others take over what they can. */
  readonly leaseMs: number;
  readonly wallClock: () => number;
  readonly deps: Deps;
}

/** What this run of the replica is called, until its lease is lost. */
interface Identity {
  readonly owner: Owner;
  readonly tag: string;
  readonly lease: ReplicaLease;
}

/** More names than a day brings, if the store is well. */
const MAX_FORMER = 16;
/** Before it is tried again to become a member under a new name. */
const REJOIN_MS = 1000;

/** This replica among the others: what it is called, whether it may rely on that, and who else there is. */
export class Cluster {
  readonly store: Store;
  readonly tags: OwnerTags;
  readonly links: LinkSecrets;
  readonly peers: PeerLeases;
  readonly members: Members;
  readonly leaseMs: number;
  readonly #options: ClusterOptions;
  readonly #onLost = new Set<() => void>();
  #identity: Identity;
  /** What it has been called: processes that were started then run on, and are asked for under those names. */
  #former: readonly Identity[] = [];
  #stopRejoining: () => void = () => {};

  /** Rejects with ERR_STORE_UNAVAILABLE. */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options);
    await cluster.#identity.lease.start();
    try {
      await cluster.members.start();
      return cluster;
    } catch (thrown) {
      cluster.#identity.lease.close();
      throw thrown;
    }
  }

  private constructor(options: ClusterOptions) {
    const { store, key, leaseMs, wallClock, deps } = options;
    const { clock, randomId } = deps;
    this.#options = options;
    this.store = store;
    this.leaseMs = leaseMs;
    this.tags = new OwnerTags(key);
    this.#identity = this.#createIdentity();
    this.links = new LinkSecrets(key, () => [this.self.id, ...this.#former.map(({ owner }) => owner.id)]);
    this.peers = new PeerLeases({ leases: store.leases, ttlMs: leaseMs, clock });
    const self = (): Owner => this.self;
    this.members = new Members({ store, peers: this.peers, leaseMs, self, clock, wallClock, randomId });
  }

  #createIdentity(): Identity {
    const { store, address, leaseMs, wallClock, deps } = this.#options;
    const owner = { id: deps.randomId(), address };
    const { log, clock } = deps;
    const lost = (): void => this.#lost();
    const lease = new ReplicaLease({
      leases: store.leases,
      holder: owner.id,
      ttlMs: leaseMs,
      clock,
      wallClock,
      log,
      lost,
    });
    return { owner, tag: this.tags.seal(owner), lease };
  }

  get self(): Owner {
    return this.#identity.owner;
  }

  /** Nobody else can have taken over what this replica has. */
  get isHeld(): boolean {
    return this.#identity.lease.isHeld;
  }

  /** Whether this replica has been called so, until others may have taken over what it had. */
  wasCalled(id: string): boolean {
    return this.#former.some(({ owner }) => owner.id === id);
  }

  /** An id that other replicas know to be of this one. */
  createId(): string {
    return this.tags.join(this.#options.deps.randomId(), this.#identity.tag);
  }

  /** Called when others may have taken over what this replica had. Returns what stops that. */
  onLost(run: () => void): () => void {
    this.#onLost.add(run);
    return () => void this.#onLost.delete(run);
  }

  /** Under a new name nobody can have taken over what it has from now on. */
  #lost(): void {
    const { log } = this.#options.deps;
    log.error(
      { code: 'ERR_CLUSTER_OWNER' },
      'this replica was silent for so long that others may have taken over its sessions with remote servers: here these end',
    );
    const [oldest] = this.#former.slice(0, -MAX_FORMER + 1);
    oldest?.lease.close();
    this.#former = [...this.#former.slice(-MAX_FORMER + 1), this.#identity];
    this.#identity = this.#createIdentity();
    for (const run of [...this.#onLost]) run();
    void this.#rejoin();
  }

  async #rejoin(): Promise<void> {
    try {
      await this.#identity.lease.start();
    } catch (thrown) {
      const { log, clock } = this.#options.deps;
      log.warn({ code: toBridgeError(thrown).code }, 'no new lease could be had; it is tried again');
      this.#stopRejoining = clock.after(REJOIN_MS, () => void this.#rejoin());
    }
  }

  /** What is left behind is free for others, as far as the store can be told. */
  async leave(): Promise<void> {
    this.#stopRejoining();
    await this.members.leave().catch(() => this.members.close());
    this.peers.close();
    const leases = [...this.#former, this.#identity].map(({ lease }) => lease);
    await Promise.all(leases.map((lease) => lease.release().catch(() => undefined)));
    await this.store.close();
  }
}
