import type { ClusterConfig } from '../config/cluster.ts';
import type { Deps } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import type { OtherReplicas } from '../observe/status/other-replicas.ts';
import { READY, type Readiness } from '../relay/readiness.ts';
import { Forwarder } from './forwarding/forwarder.ts';
import { EntryLinks } from './forwarding/link/entry-links.ts';
import { LinkSecrets } from './forwarding/link/link-secrets.ts';
import { OwnerLinks } from './forwarding/link/owner-links.ts';
import type { LeavingStage } from './forwarding/passed-request.ts';
import { ReplicaQueries } from './forwarding/replica-queries.ts';
import { Router } from './forwarding/router.ts';
import { ClusterLimits } from './limits/cluster-limits.ts';
import { CallerOwners } from './ownership/caller-owners.ts';
import { Cluster } from './ownership/cluster.ts';
import { ReplicatedServer, type ServerToReplicate } from './replicated-server.ts';
import { ClusterKey } from './store/cluster-key.ts';
import { connectRedisStore } from './store/redis/redis-store.ts';
import { ExclusiveValue } from './stored/exclusive-value.ts';
import { SharedUsage } from './stored/shared-usage.ts';

const LOST = new BridgeError(
  'ERR_SESSION_CLOSED',
  'This replica was silent for so long that another may have the session; open a new one if it is not found.',
);
const DEAD = new BridgeError(
  'ERR_SESSION_CLOSED',
  'This replica was silent for so long that others have told its clients that the session is gone; open a new one.',
);
const NOT_HELD = new BridgeError(
  'ERR_STORE_UNAVAILABLE',
  'This replica has not been able to reach the store for so long that others may have taken over its sessions.',
);
const HANDED_OVER = new BridgeError(
  'ERR_SESSION_CLOSED',
  'This replica is shutting down; the session goes on at another.',
);

/**
 * Time for a load balancer to see that this replica is no longer ready. Requests that still arrive meanwhile are
 * served.
 */
const NOTICE_MS = 1000;
/**
 * Time in which other replicas learn with their next request that a session has moved. A client that is cut off instead
 * could not tell if its request was served.
 */
const MOVING_MS = 500;
/**
 * Time for other replicas to close their idle links. Closing a connection that has unread data may lose what was sent
 * last.
 */
const LINKS_END_MS = 500;

interface ReplicaOptions extends Pick<ClusterConfig, 'limits'> {
  readonly key: ClusterKey;
  readonly marks: readonly [string, ...string[]];
}

/**
 * This bridge as one of several replicas, which serve the same servers behind one address: one bridge to their clients.
 */
export class Replica {
  /** Links on which other replicas pass requests on to this one. */
  readonly links: OwnerLinks;
  readonly others: OtherReplicas;
  /** Marks of the bridge, equal at all replicas, the first of which is sent; see AccessOptions. */
  readonly marks: ReplicaOptions['marks'];
  readonly #cluster: Cluster;
  readonly #deps: Deps;
  readonly #entryLinks: EntryLinks;
  readonly #router: Router;
  readonly #owners: CallerOwners;
  /** Limits of all replicas together; undefined: each replica has its own. */
  readonly #limits: ClusterLimits | undefined;
  readonly #servers = new Set<ReplicatedServer>();
  #usage: SharedUsage | undefined;
  #stage: LeavingStage = 'staying';

  /** Rejects with ERR_STORE_UNAVAILABLE. */
  static async join(config: ClusterConfig, deps: Deps): Promise<Replica> {
    const key = new ClusterKey(config.keys);
    const { address, tls, prefix } = config.store;
    const store = await connectRedisStore({ address, tls, prefix, key, log: deps.log });
    const options = {
      store,
      key,
      address: config.advertise.origin,
      leaseMs: config.leaseMs,
      wallClock: deps.wallClock,
      deps,
    };
    try {
      const cluster = await Cluster.join(options);
      if (config.limits === 'of-all-replicas') await untilSettled(cluster, deps);
      return new Replica(cluster, { limits: config.limits, key, marks: marksOf(key, prefix) }, deps);
    } catch (thrown) {
      await store.close();
      throw thrown;
    }
  }

  constructor(cluster: Cluster, { limits, key, marks }: ReplicaOptions, deps: Deps) {
    this.marks = marks;
    this.#limits = limits === 'of-all-replicas' ? new ClusterLimits(cluster, deps.clock) : undefined;
    const { peers, leaseMs } = cluster;
    const secrets = new LinkSecrets(key, () => cluster.ids);
    this.#cluster = cluster;
    this.#deps = deps;
    this.links = new OwnerLinks({ secrets, deps });
    this.#entryLinks = new EntryLinks({ secrets, peers, leaseMs, deps });
    this.others = new ReplicaQueries(cluster, { links: this.#entryLinks, clock: deps.clock });
    this.#owners = new CallerOwners(cluster, deps.clock);
    this.#router = new Router({ cluster, forwarder: new Forwarder(this.#entryLinks), deps });
    cluster.onLost(() => {
      for (const server of this.#servers) server.lost(LOST);
    });
    cluster.onDead((id) => {
      for (const server of this.#servers) server.died(id, DEAD);
    });
  }

  /** Counts of all replicas; undefined: usage is not recorded. */
  get usage(): SharedUsage | undefined {
    return this.#usage;
  }

  /** Starts keeping the usage counts in the store, where they outlive this replica. Called at most once. */
  shareUsage(): SharedUsage {
    this.#usage = new SharedUsage({ records: this.#cluster.store.records, deps: this.#deps });
    return this.#usage;
  }

  /** Returns dependencies whose ids name this replica, for clients to come back to. */
  depsWithIds(deps: Deps): Deps {
    return { ...deps, randomId: () => this.#cluster.createId() };
  }

  /** Opens a text that all replicas share under this name, and that one of them at a time may change. */
  openShared(name: string): ExclusiveValue {
    return new ExclusiveValue({ cluster: this.#cluster, name, clock: this.#deps.clock });
  }

  /** Adds a server that is about to be served. */
  addServer(server: ServerToReplicate): ReplicatedServer {
    const replicated = new ReplicatedServer(server, {
      cluster: this.#cluster,
      router: this.#router,
      owners: this.#owners,
      limits: this.#limits,
      stage: () => this.#stage,
      onEnded: () => void this.#servers.delete(replicated),
    });
    this.#servers.add(replicated);
    return replicated;
  }

  /**
   * Reports not ready while other replicas may have taken over sessions of this one. Servers whose sessions cannot move
   * do not matter.
   */
  readiness(): Readiness {
    const isDoubtful = !this.#cluster.isHeld && [...this.#servers].some(({ state }) => state.sessions !== undefined);
    if (!isDoubtful) return READY;
    return { state: 'failing', error: NOT_HELD, sinceMs: this.#deps.clock.now(), dialing: 'refused' };
  }

  get isStoreAvailable(): boolean {
    return this.#cluster.store.status.state === 'connected';
  }

  // ---- its end

  /**
   * Hands over what other replicas can continue, while this one finishes the rest. The bridge has announced its end
   * before.
   * @param drainHere takes nothing new, and resolves when all requests are answered or the grace time is over
   */
  async drain(graceMs: number, drainHere: () => Promise<unknown>): Promise<void> {
    const pause = (ms: number): Promise<void> =>
      new Promise((resolve) => void this.#deps.clock.after(Math.min(ms, graceMs / 2), resolve));
    await pause(NOTICE_MS);
    this.#stage = 'moving';
    this.#limits?.beginLeaving();
    const handingOver = this.#handOver(graceMs);
    await pause(MOVING_MS);
    this.#stage = 'draining';
    await Promise.all([drainHere(), handingOver]);
    this.links.leave();
    // Sessions may have been opened meanwhile.
    await this.#handOver(0);
  }

  async #handOver(graceMs: number): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.handOver(graceMs, HANDED_OVER)));
  }

  /** Leaves the other replicas, after all servers have ended. */
  async close(): Promise<void> {
    await this.links.ended(LINKS_END_MS);
    this.#entryLinks.close();
    this.#limits?.close();
    await this.#usage?.close();
    await this.#cluster.leave();
  }
}

/** Derives the marks of the bridge. Servers see them, and they reveal nothing of the key. */
function marksOf(key: ClusterKey, prefix: string): ReplicaOptions['marks'] {
  const [first, ...others] = key.derive(`mark of the bridge ${prefix}`);
  return [first.toString('base64url'), ...others.map((other) => other.toString('base64url'))];
}

/**
 * Waits until limits can be shared. The first replicas cannot know if the store has lost others, and what those hold.
 */
async function untilSettled({ members, leaseMs }: Cluster, { log }: Deps): Promise<void> {
  if (members.epoch?.state !== 'settled') {
    log.info({ leaseMs }, 'the store knows of no shares of --cluster-limits yet: for one lease others can tell theirs');
  }
  await members.settled();
}
