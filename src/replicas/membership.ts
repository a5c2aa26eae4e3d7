import type { IncomingMessage, ServerResponse } from 'node:http';
import { areKeptApart, type CallerPolicy } from '../bridge/caller-policy.ts';
import { nameServer } from '../bridge/create-dialer.ts';
import type { CreatedRoutes } from '../bridge/create-routes.ts';
import type { ClusterConfig } from '../config/cluster.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { SESSION_PARAMETER } from '../downstream/http-sse/endpoint.ts';
import type { HttpRoute } from '../downstream/listener/http-server.ts';
import type { RouteCall, RoutedCall } from '../downstream/mcp-endpoint.ts';
import type { RefuseMoved } from '../downstream/streamable-session/endpoint.ts';
import { BridgeError } from '../errors.ts';
import { principalOf } from '../http/auth/callers.ts';
import { SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import type { ServerSpeech } from '../relay/observer.ts';
import type { Readiness } from '../relay/ports.ts';
import type { SessionRegistry } from '../relay/sessions/session-registry.ts';
import { CallRouter } from './forwarding/call-router.ts';
import { Forwarder } from './forwarding/forwarder.ts';
import { EntryLinks } from './forwarding/link/entry-links.ts';
import { OwnerLinks } from './forwarding/link/owner-links.ts';
import type { LeavingStage } from './forwarding/passed-request.ts';
import { ReplicaQueries } from './forwarding/replica-queries.ts';
import { SessionRouter, type TakenOver } from './forwarding/session-router.ts';
import { ClusterLimits } from './limits/cluster-limits.ts';
import { type CountedRegistries, MemberLimits, type MemberProcesses } from './limits/member-limits.ts';
import { CallerOwners } from './ownership/caller-owners.ts';
import { Cluster } from './ownership/cluster.ts';
import { ExclusiveValue } from './ownership/exclusive-value.ts';
import { ClusterKey } from './store/cluster-key.ts';
import { SessionRecords } from './stored/session-records.ts';
import type { SharedUsage } from './stored/shared-usage.ts';
import { SharedVerdict } from './stored/shared-verdict.ts';
import { StoredOutcomes } from './stored/stored-outcomes.ts';

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

/** A server of both eras is addressed in the client's era. */
const MODERN_CLIENT = { era: 'modern', revision: undefined } as const;

interface MembershipOptions extends Pick<ClusterConfig, 'limits'> {
  readonly marks: readonly [string, ...string[]];
}

/** Membership of this bridge in a group of replicas. */
export class Membership {
  /** Links on which other replicas pass requests on to this one. */
  readonly ownerLinks: OwnerLinks;
  readonly queries: ReplicaQueries;
  /** Limits of all replicas together; undefined: each replica has its own. */
  readonly limits: ClusterLimits | undefined;
  /** Marks of the bridge, equal at all replicas, the first of which is sent; see AccessOptions. */
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
    // Loaded on demand, with the library that it needs.
    const { connectRedisStore } = await import('./store/redis/redis-store.ts');
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

  /** Counts of all replicas; undefined: usage is not recorded. */
  get usage(): SharedUsage | undefined {
    return this.#usage;
  }

  /** Starts keeping the usage counts in the store, where they outlive this replica. Called at most once. */
  async shareUsage(): Promise<SharedUsage> {
    const { SharedUsage } = await import('./stored/shared-usage.ts');
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

  /** Opens the store of the outcomes of calls and tasks at this server, for the remaining replicas. */
  outcomesOf(config: ServerConfig): StoredOutcomes {
    return new StoredOutcomes({
      cluster: this.#cluster,
      server: nameServer(config),
      clock: this.#deps.clock,
      log: this.#deps.log,
    });
  }

  /** Adds a server that is served now. */
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

  /**
   * Reports not ready while other replicas may have taken over sessions of this one. Servers whose sessions cannot move
   * do not matter.
   */
  readiness(): Readiness {
    const isDoubtful = !this.#cluster.isHeld && [...this.#servers].some(({ storage }) => storage !== undefined);
    return isDoubtful ? { state: 'refused', error: NOT_HELD } : { state: 'ready' };
  }

  get isStoreAvailable(): boolean {
    return this.#cluster.store.status.state === 'connected';
  }

  /** Starts leaving: requests for what has moved are sent to its new replica from now on. */
  beginLeaving(): void {
    this.#stage = 'moving';
    this.limits?.beginLeaving();
  }

  /** From now on, requests that other replicas pass on go elsewhere unless they continue something here. */
  beginDraining(): void {
    this.#stage = 'draining';
  }

  /** Leaves the group, after everything possible was handed over. */
  async leave(): Promise<void> {
    this.#entryLinks.close();
    this.limits?.close();
    await this.#usage?.close();
    await this.#cluster.leave();
  }
}

/** A server with the policy for its callers. */
export interface MemberServer {
  readonly config: ServerConfig;
  readonly callers: CallerPolicy;
  /** Detected protocols of the server. */
  readonly speech: ServerSpeech;
  /** Limit of its processes at all replicas together; undefined: each replica has its own. */
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

/** A server of this replica that the other replicas serve, too. */
export class ServerMember {
  /** Store of its sessions; undefined: they are processes, which cannot move. */
  readonly storage: SessionRecords | undefined;
  readonly routeCall: RouteCall;
  /** Rejects requests of sessions that have moved; undefined: its sessions cannot move. */
  readonly refuseMoved: RefuseMoved | undefined;
  /** Limits of all replicas together; undefined: each replica has its own. */
  readonly limits: MemberLimits | undefined;
  readonly #options: ServerMemberOptions;
  readonly #closed: () => void;
  /** Verdict on the server's era that replicas share; undefined: the era does not decide where calls are served. */
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
   * Returns the name under which one replica owns a caller's calls; undefined: any replica may serve them. Callers
   * without names share nothing, so their calls need no owner. Neither do calls to a remote server of the modern era,
   * which takes any call from anywhere. Each replica has its own processes, though, and one process may not know what
   * another has handed out. Until its era is known, a server is assumed to remember its callers.
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

  /** Wraps the routes so that requests with a session go to the replica that has it. */
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
      // Another replica may have a free slot for the session.
      await this.storage.handedOver(id);
      throw thrown;
    }
    this.#options.deps.log.info({ session: id.slice(0, 6) }, 'went on with a session whose replica is gone');
    return { kind: 'here' };
  }

  /**
   * Called when other replicas tell clients that the sessions under this replica's former id are gone. Sessions that
   * can move were ended before.
   */
  died(owner: string, reason: BridgeError): void {
    if (this.storage !== undefined) return;
    const { tags } = this.#options.cluster;
    this.#sessions?.abandon(reason, (id) => tags.ownerOf(id)?.id === owner);
  }

  /**
   * Called when other replicas may have taken over the sessions of this one. Sessions that are processes cannot be
   * taken over.
   */
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

/** Derives the marks of the bridge. Servers see them, and they reveal nothing of the key. */
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

/** Serves a request after the other replicas have answered, or at once if there is nothing to ask. */
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

/**
 * Waits until limits can be shared. The first replicas cannot know if the store has lost others, and what those hold.
 */
async function untilSettled({ members, leaseMs }: Cluster, { log }: Deps): Promise<void> {
  if (members.epoch?.state !== 'settled') {
    log.info({ leaseMs }, 'the store knows of no shares of --cluster-limits yet: for one lease others can tell theirs');
  }
  await members.settled();
}
