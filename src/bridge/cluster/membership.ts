import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallerOwners } from '../../cluster/caller-owners.ts';
import { Cluster } from '../../cluster/cluster.ts';
import { ClusterLimits } from '../../cluster/cluster-limits.ts';
import { ExclusiveValue } from '../../cluster/exclusive-value.ts';
import { SessionRecords } from '../../cluster/session-records.ts';
import { SharedVerdict } from '../../cluster/shared-verdict.ts';
import { StoredOutcomes } from '../../cluster/stored-outcomes.ts';
import type { ClusterConfig } from '../../config/cluster.ts';
import type { ServerConfig } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { CallRouter } from '../../downstream/cluster/call-router.ts';
import { Forwarder } from '../../downstream/cluster/forwarder.ts';
import type { LeavingStage } from '../../downstream/cluster/hops.ts';
import { EntryLinks } from '../../downstream/cluster/link/entry-links.ts';
import { OwnerLinks } from '../../downstream/cluster/link/owner-links.ts';
import { ReplicaQueries } from '../../downstream/cluster/replica-queries.ts';
import { SessionRouter, type TakenOver } from '../../downstream/cluster/session-router.ts';
import { SESSION_PARAMETER } from '../../downstream/http-sse/endpoint.ts';
import type { HttpRoute } from '../../downstream/listener/http-server.ts';
import type { RouteCall, RoutedCall } from '../../downstream/mcp-endpoint.ts';
import type { RefuseMoved } from '../../downstream/streamable-session/endpoint.ts';
import { BridgeError } from '../../errors.ts';
import { principalOf } from '../../http/auth/callers.ts';
import { SESSION_ID_HEADER } from '../../mcp/vocabulary/headers.ts';
import type { ServerSpeech } from '../../relay/observer.ts';
import type { Readiness } from '../../relay/ports.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import { ClusterKey } from '../../store/cluster-key.ts';
import { areKeptApart, type CallerPolicy } from '../caller-policy.ts';
import { nameServer } from '../create-dialer.ts';
import type { CreatedRoutes } from '../create-routes.ts';
import { type CountedRegistries, MemberLimits, type MemberProcesses } from './member-limits.ts';
import type { SharedUsage } from './shared-usage.ts';

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

/** A server of both eras is spoken to in theirs. */
const MODERN_CLIENT = { era: 'modern', revision: undefined } as const;

interface MembershipOptions extends Pick<ClusterConfig, 'limits'> {
  readonly marks: readonly [string, ...string[]];
}

/** This bridge as one of several replicas. */
export class Membership {
  /** On which other replicas pass requests on to this one. */
  readonly ownerLinks: OwnerLinks;
  readonly queries: ReplicaQueries;
  /** Undefined: each replica has limits of its own. */
  readonly limits: ClusterLimits | undefined;
  /** See AccessOptions: those of all replicas are the same. The first one is sent. */
  readonly marks: MembershipOptions['marks'];
  readonly #cluster: Cluster;
  readonly #deps: Deps;
  readonly #entryLinks: EntryLinks;
  readonly #forwarder: Forwarder;
  readonly #router: SessionRouter;
  readonly #owners: CallerOwners;
  readonly #servers = new Set<ServerMember>();
  #usage: SharedUsage | undefined;
  #stage: LeavingStage = 'staying';

  /** Rejects with ERR_STORE_UNAVAILABLE. */
  static async join(config: ClusterConfig, deps: Deps): Promise<Membership> {
    // Loaded where it is used, with the library behind it.
    const { connectRedisStore } = await import('../../store/redis/redis-store.ts');
    const key = new ClusterKey(config.key, '--cluster-key');
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
      return new Membership(cluster, { limits: config.limits, marks: marksOf(key, prefix) }, deps);
    } catch (thrown) {
      await store.close();
      throw thrown;
    }
  }

  constructor(cluster: Cluster, { limits, marks }: MembershipOptions, deps: Deps) {
    this.marks = marks;
    this.limits = limits === 'of-all-replicas' ? new ClusterLimits(cluster, deps.clock) : undefined;
    const { links: secrets, peers, leaseMs } = cluster;
    this.#cluster = cluster;
    this.#deps = deps;
    this.ownerLinks = new OwnerLinks({ secrets, deps });
    this.#entryLinks = new EntryLinks({ secrets, peers, leaseMs, deps });
    this.queries = new ReplicaQueries(cluster, { links: this.#entryLinks, clock: deps.clock });
    this.#forwarder = new Forwarder(this.#entryLinks);
    this.#owners = new CallerOwners(cluster, deps.clock);
    this.#router = new SessionRouter({ cluster, forwarder: this.#forwarder, stage: () => this.#stage, deps });
    cluster.onLost(() => {
      for (const server of this.#servers) server.lost(LOST);
    });
    cluster.onDead((id) => {
      for (const server of this.#servers) server.died(id, DEAD);
    });
  }

  /** Counts of all replicas; undefined: nobody has wanted them. */
  get usage(): SharedUsage | undefined {
    return this.#usage;
  }

  /** From now on what is counted here outlives this replica. Called once at most. */
  async shareUsage(): Promise<SharedUsage> {
    const { SharedUsage } = await import('./shared-usage.ts');
    this.#usage = new SharedUsage({ records: this.#cluster.store.records, deps: this.#deps });
    return this.#usage;
  }

  /** The ids that clients get say where to come back to. */
  depsWithIds(deps: Deps): Deps {
    return { ...deps, randomId: () => this.#cluster.createId() };
  }

  /** A text that all replicas know by this name, and that one at a time may change. */
  openShared(name: string): ExclusiveValue {
    return new ExclusiveValue({ cluster: this.#cluster, name, clock: this.#deps.clock });
  }

  /** What calls and tasks at this server have ended with, for the replicas that are left. */
  outcomesOf(config: ServerConfig): StoredOutcomes {
    return new StoredOutcomes({
      cluster: this.#cluster,
      server: nameServer(config),
      clock: this.#deps.clock,
      log: this.#deps.log,
    });
  }

  /** A server that is served now. */
  addServer(served: MemberServer): ServerMember {
    const parts = {
      cluster: this.#cluster,
      router: this.#router,
      owners: this.#owners,
      forwarder: this.#forwarder,
      stage: () => this.#stage,
      limits: this.limits,
    };
    const member = new ServerMember({ ...served, ...parts }, () => this.#servers.delete(member));
    this.#servers.add(member);
    return member;
  }

  /** What could have been taken over is not served while that is not known. What could not, is. */
  readiness(): Readiness {
    const isDoubtful = !this.#cluster.isHeld && [...this.#servers].some(({ storage }) => storage !== undefined);
    return isDoubtful ? { state: 'refused', error: NOT_HELD } : { state: 'ready' };
  }

  get isStoreAvailable(): boolean {
    return this.#cluster.store.status.state === 'connected';
  }

  /** What has moved away from here is sent there from now on. */
  beginLeaving(): void {
    this.#stage = 'moving';
    this.limits?.beginLeaving();
  }

  /** What other replicas pass on goes elsewhere, unless it continues something that is here. */
  beginDraining(): void {
    this.#stage = 'draining';
  }

  /** All that could be handed over has been. */
  async leave(): Promise<void> {
    this.#entryLinks.close();
    this.limits?.close();
    await this.#usage?.close();
    await this.#cluster.leave();
  }
}

/** One server, and for whom it is. */
export interface MemberServer {
  readonly config: ServerConfig;
  readonly callers: CallerPolicy;
  /** What the server is known to speak. */
  readonly speech: ServerSpeech;
  /** The limit of its processes at all replicas together; undefined: each replica has its own. */
  readonly processes: MemberProcesses | undefined;
  readonly registries: () => CountedRegistries;
  readonly deps: Deps;
}

interface ServerMemberOptions extends MemberServer {
  readonly cluster: Cluster;
  readonly router: SessionRouter;
  readonly owners: CallerOwners;
  readonly forwarder: Forwarder;
  readonly stage: () => LeavingStage;
  readonly limits: ClusterLimits | undefined;
}

/** One server of this replica, which the others have, too. */
export class ServerMember {
  /** Undefined: its sessions are processes, which cannot move. */
  readonly storage: SessionRecords | undefined;
  readonly routeCall: RouteCall;
  /** Undefined: its sessions cannot move. */
  readonly refuseMoved: RefuseMoved | undefined;
  /** Undefined: each replica has limits of its own. */
  readonly limits: MemberLimits | undefined;
  readonly #options: ServerMemberOptions;
  readonly #closed: () => void;
  /** Undefined: the era of the server does not decide where its calls are served. */
  readonly #verdict: SharedVerdict | undefined;
  readonly #taking = new Map<string, Promise<TakenOver>>();
  #sessions: SessionRegistry | undefined;

  constructor(options: ServerMemberOptions, closed: () => void) {
    const { cluster, config, deps } = options;
    const { target, sessions } = config;
    this.#options = options;
    this.#closed = closed;
    const { log, clock } = deps;
    const kept = { cluster, server: nameServer(config), ttlMs: 2 * sessions.sessionTimeoutMs, clock, log };
    this.storage = target.kind === 'command' ? undefined : new SessionRecords(kept);
    this.refuseMoved = this.storage && ((request, response) => options.router.refuseWhileLeaving(request, response));
    this.#verdict = createVerdict(options);
    const calls = new CallRouter({ ...options, ownedName: (principal) => this.#ownedName(principal) });
    const { limits } = options;
    this.limits = limits && new MemberLimits({ ...options, limits });
    const route: RouteCall =
      this.limits === undefined
        ? (call) => calls.route(call)
        : (call) => calls.route({ ...call, serve: () => this.#serveCall(call) });
    this.routeCall = (call) => {
      const looking = this.#verdict?.look();
      if (looking === undefined) route(call);
      else serveAfter([looking], call.response, () => route(call));
    };
  }

  /**
   * Callers without names share nothing, so their calls need no owner. Nor do calls to a remote server of the modern era,
   * which takes any call from anywhere. A replica has processes of its own, though, and what one of them gave out another
   * may not know. As long as its era is not known, a server is taken to remember its callers.
   */
  #ownedName(principal: string): string | undefined {
    const { config, callers } = this.#options;
    if (areKeptApart(callers, config.sessions)) return undefined;
    if (this.#verdict?.isModern === true) return undefined;
    return `caller ${JSON.stringify([nameServer(config), principal])}`;
  }

  #serveCall({ request, response, serve }: RoutedCall): void {
    serveAfter([this.limits?.beforeCall(request), this.#options.processes?.beforeStart()], response, serve);
  }

  #serveFirst(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
    if (this.limits === undefined) return serve();
    serveAfter(this.#beforeSession(request), response, serve);
  }

  #beforeSession(request: IncomingMessage): readonly (Promise<unknown> | undefined)[] {
    return [this.limits?.beforeSession(request), this.#options.processes?.beforeStart()];
  }

  /** Leads requests with a session to where it is. */
  lead({ routes, streamable }: CreatedRoutes, sessions: SessionRegistry): ReadonlyMap<string, HttpRoute> {
    this.#sessions = sessions;
    const takeOver = (id: string, request: IncomingMessage): Promise<TakenOver> => {
      const taking = this.#taking.get(id) ?? this.#take(id, request, streamable).finally(() => this.#taking.delete(id));
      this.#taking.set(id, taking);
      return taking;
    };
    const routed = {
      has: (id: string): boolean => sessions.has(id),
      takeOver: this.storage === undefined ? undefined : takeOver,
    };
    return new Map([...routes].map(([path, route]) => [path, this.#ledTo(route, routed)]));
  }

  #ledTo(route: HttpRoute, sessions: Parameters<SessionRouter['route']>[1]['sessions']): HttpRoute {
    return (request, response, query) => {
      const id = request.headers[SESSION_ID_HEADER] ?? query.get(SESSION_PARAMETER);
      const serve = (): void => route(request, response, query);
      if (typeof id !== 'string') return this.#serveFirst(request, response, serve);
      this.#options.router.route(id, { sessions, request, response, serve });
    };
  }

  async #take(id: string, request: IncomingMessage, streamable: CreatedRoutes['streamable']): Promise<TakenOver> {
    if (this.storage === undefined) return { kind: 'unknown' };
    const principal = principalOf(request);
    await Promise.all(this.#beforeSession(request));
    const taken = await this.storage.take(id, principal);
    if (taken.kind !== 'taken') return taken;
    const client = { transport: 'streamable-http', era: 'legacy', principal, environment: undefined } as const;
    try {
      streamable.restore({ id, state: taken.state, client }, taken.replay, taken.token);
    } catch (thrown) {
      // Another replica may have a free slot for it.
      await this.storage.handedOver(id);
      throw thrown;
    }
    this.#options.deps.log.info({ session: id.slice(0, 6) }, 'went on with a session whose replica is gone');
    return { kind: 'here' };
  }

  /** Others tell clients that what this replica had under this name is gone. What can move was ended before. */
  died(owner: string, reason: BridgeError): void {
    if (this.storage !== undefined) return;
    const { tags } = this.#options.cluster;
    this.#sessions?.abandon(reason, (id) => tags.ownerOf(id)?.id === owner);
  }

  /** Others may have what was here. Processes nobody can have taken over. */
  lost(reason: BridgeError): void {
    if (this.storage === undefined) return;
    this.storage.lost();
    this.#sessions?.abandon(reason);
  }

  close(): void {
    this.storage?.close();
    this.limits?.close();
    this.#closed();
  }
}

/** Servers see them, so they are derived: nothing of the key can be told from one. */
function marksOf(key: ClusterKey, prefix: string): MembershipOptions['marks'] {
  const [first, ...others] = key.derive(`mark of the bridge ${prefix}`);
  return [first.toString('base64url'), ...others.map((other) => other.toString('base64url'))];
}

function createVerdict({ cluster, config, callers, speech, deps }: ServerMemberOptions): SharedVerdict | undefined {
  const { target, sessions } = config;
  if (target.kind !== 'url' || areKeptApart(callers, sessions)) return undefined;
  const server = JSON.stringify([nameServer(config), target.url.href]);
  const isKnown = (): boolean => speech.spokenTo(MODERN_CLIENT)?.era === 'modern';
  return new SharedVerdict({ cluster, server, isKnown, clock: deps.clock });
}

/** What has to be asked of the other replicas is asked before; where there is nothing to ask, it is served at once. */
function serveAfter(
  asked: readonly (Promise<unknown> | undefined)[],
  response: ServerResponse,
  serve: () => void,
): void {
  const waiting = asked.filter((each) => each !== undefined);
  if (waiting.length === 0) return serve();
  void Promise.all(waiting).then(() => {
    if (!response.destroyed) serve();
  });
}

/** The first replicas of a cluster cannot know whether the store has forgotten others, and what those hold. */
async function untilSettled({ members, leaseMs }: Cluster, { log }: Deps): Promise<void> {
  if (members.epoch?.state !== 'settled') {
    log.info({ leaseMs }, 'the store knows of no shares of --cluster-limits yet: for one lease others can tell theirs');
  }
  await members.settled();
}
