import type { Deps } from '../deps.ts';
import { toBridgeError } from '../errors.ts';
import type { ClusterKey } from '../store/cluster-key.ts';
import type { Store } from '../store/store.ts';
import { LinkSecrets } from './link-secrets.ts';
import { Members } from './members.ts';
import { type Owner, OwnerTags } from './owner-tags.ts';
import { PeerLeases } from './peer-leases.ts';
import { type LeaseLoss, ReplicaLease } from './replica-lease.ts';

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
  readonly #onStoreBack = new Set<() => void>();
  readonly #onDead = new Set<(id: string) => void>();
  #identity: Identity;
  /** What it has been called: processes that were started then run on until it is declared dead under that name. */
  #former: readonly Identity[] = [];
  #stopRejoining: () => void = () => {};
  #stopWatching: () => void = () => {};

  /** Rejects with ERR_STORE_UNAVAILABLE. */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options);
    await cluster.#identity.lease.start();
    try {
      await cluster.members.start();
      cluster.#watchStore();
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

  /** A store that comes back may be gone again before the next timer, and may have forgotten what it was told. */
  #watchStore(): void {
    const stops = [
      this.store.onAvailable(() => void this.#storeCameBack()),
      this.members.onNewEpoch(() => this.peers.tellAgain()),
    ];
    this.#stopWatching = () => {
      for (const stop of stops) stop();
    };
  }

  async #storeCameBack(): Promise<void> {
    const leases = [...this.#former, this.#identity].map(({ lease }) => lease);
    await Promise.all([...leases.map((lease) => lease.renewSoon()), this.members.look().catch(() => undefined)]);
    if (this.isHeld) for (const run of [...this.#onStoreBack]) run();
  }

  #createIdentity(): Identity {
    const { store, address, leaseMs, wallClock, deps } = this.#options;
    const owner = { id: deps.randomId(), address };
    const { log, clock } = deps;
    const lost = (how: LeaseLoss): void => this.#lost(owner.id, how);
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

  /** As `confirm` of a lease, of those of all names. */
  confirm(): Promise<unknown> | undefined {
    const own = this.#identity.lease.confirm();
    if (this.#former.length === 0) return own;
    const all = [own, ...this.#former.map(({ lease }) => lease.confirm())].filter((each) => each !== undefined);
    return all.length === 0 ? undefined : Promise.all(all);
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

  /** Called when the store answers again, and nobody has taken over what this replica has. Returns what stops that. */
  onStoreBack(run: () => void): () => void {
    this.#onStoreBack.add(run);
    return () => void this.#onStoreBack.delete(run);
  }

  /** Called when others say that nothing is left of what this replica had under a name. Returns what stops that. */
  onDead(run: (id: string) => void): () => void {
    this.#onDead.add(run);
    return () => void this.#onDead.delete(run);
  }

  #lost(id: string, how: LeaseLoss): void {
    if (id === this.#identity.owner.id) this.#takeNewName(how);
    if (how === 'dead') this.#died(id);
  }

  #died(id: string): void {
    for (const run of [...this.#onDead]) run(id);
  }

  /** Under a new name nobody can have taken over what it has from now on. */
  #takeNewName(how: LeaseLoss): void {
    this.#options.deps.log.error({ code: 'ERR_CLUSTER_OWNER' }, SILENT[how]);
    for (const { owner, lease } of this.#former.slice(0, -MAX_FORMER + 1)) {
      lease.close();
      this.#died(owner.id);
    }
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
    this.#stopWatching();
    await this.members.leave().catch(() => this.members.close());
    this.peers.close();
    const leases = [...this.#former, this.#identity].map(({ lease }) => lease);
    await Promise.all(leases.map((lease) => lease.release().catch(() => undefined)));
    await this.store.close();
  }
}

const SILENT: Readonly<Record<LeaseLoss, string>> = {
  doubted:
    'this replica was silent for so long that others may have taken over its sessions with remote servers: here these end',
  dead: 'this replica was silent for so long that others have declared it dead, and tell its clients so: all its sessions end here',
};
