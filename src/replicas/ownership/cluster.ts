import type { Deps } from '../../deps.ts';
import { toBridgeError } from '../../errors.ts';
import type { ClusterKey } from '../store/cluster-key.ts';
import type { Store } from '../store/store.ts';
import { Members } from './members.ts';
import { type Owner, OwnerTags } from './owner-tags.ts';
import { PeerLeases } from './peer-leases.ts';
import { type LeaseLoss, ReplicaLease } from './replica-lease.ts';

export interface ClusterOptions {
  readonly store: Store;
  readonly key: ClusterKey;
  /** URL at which other replicas reach this one. */
  readonly address: string;
  /** Other replicas take over from a replica that shows no sign of life for this long. */
  readonly leaseMs: number;
  readonly wallClock: () => number;
  readonly deps: Deps;
}

/** Name under which this replica holds a lease. When the lease is lost, the replica takes a new identity. */
interface Identity {
  readonly owner: Owner;
  readonly tag: string;
  readonly lease: ReplicaLease;
}

/**
 * Former identities that are kept. A lease is rarely lost while the store works, so more than this are not expected in
 * a day.
 */
const MAX_FORMER = 16;
/** Delay before the next attempt to get a lease under a new name. */
const REJOIN_MS = 1000;

/** This replica's membership in the cluster: its identity, whether its lease still holds, and the other members. */
export class Cluster {
  readonly store: Store;
  readonly tags: OwnerTags;
  readonly peers: PeerLeases;
  readonly members: Members;
  readonly leaseMs: number;
  readonly #options: ClusterOptions;
  readonly #onLost = new Set<() => void>();
  readonly #onStoreBack = new Set<() => void>();
  readonly #onDead = new Set<(id: string) => void>();
  #identity: Identity;
  /** Former identities. Processes started under one of them keep running until that identity is declared dead. */
  #former: readonly Identity[] = [];
  #stopRejoining: () => void = () => {};
  #stopWatching: () => void = () => {};

  /** Joins the cluster under a new identity. Rejects with ERR_STORE_UNAVAILABLE. */
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
    this.peers = new PeerLeases({ leases: store.leases, ttlMs: leaseMs, clock });
    const self = (): Owner => this.self;
    this.members = new Members({ store, peers: this.peers, leaseMs, self, clock, wallClock, randomId });
  }

  /**
   * Renews leases and reads the members as soon as the store is available again, without waiting for the next timer:
   * the store may fail again before that, and it may have lost its records.
   */
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

  /** The ids of this replica: the current one first, then former ones that may still have processes here. */
  get ids(): readonly [string, ...string[]] {
    return [this.self.id, ...this.#former.map(({ owner }) => owner.id)];
  }

  get self(): Owner {
    return this.#identity.owner;
  }

  /** True while no other replica can have taken over anything from this one. */
  get isHeld(): boolean {
    return this.#identity.lease.isHeld;
  }

  /**
   * Confirms the leases of all identities, like `confirm` of ReplicaLease. Returns undefined if there is nothing to
   * wait for.
   */
  confirm(): Promise<unknown> | undefined {
    const own = this.#identity.lease.confirm();
    if (this.#former.length === 0) return own;
    const all = [own, ...this.#former.map(({ lease }) => lease.confirm())].filter((each) => each !== undefined);
    return all.length === 0 ? undefined : Promise.all(all);
  }

  /** True if `id` is a former identity of this replica that may still have processes here. */
  wasCalled(id: string): boolean {
    return this.#former.some(({ owner }) => owner.id === id);
  }

  /** Returns a new id that other replicas recognize as one of this replica. */
  createId(): string {
    return this.tags.join(this.#options.deps.randomId(), this.#identity.tag);
  }

  /** Calls `run` whenever other replicas may have taken over from this one. Returns a function that unsubscribes. */
  onLost(run: () => void): () => void {
    this.#onLost.add(run);
    return () => void this.#onLost.delete(run);
  }

  /**
   * Calls `run` when the store is available again and this replica still holds its lease. Returns a function that
   * unsubscribes.
   */
  onStoreBack(run: () => void): () => void {
    this.#onStoreBack.add(run);
    return () => void this.#onStoreBack.delete(run);
  }

  /**
   * Calls `run` with the id of an identity of this replica under which nothing is left: other replicas have declared it
   * dead, or it was dropped for the limit on former identities. Returns a function that unsubscribes.
   */
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

  /** Takes a new identity. Other replicas cannot have taken over anything that begins under it. */
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
      const { code, message } = toBridgeError(thrown);
      log.warn({ code }, `This replica could not get a new lease, and tries again: ${message}`);
      this.#stopRejoining = clock.after(REJOIN_MS, () => void this.#rejoin());
    }
  }

  /**
   * Leaves the cluster. As far as the store is reachable, it is told that other replicas may take over from this one.
   */
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
