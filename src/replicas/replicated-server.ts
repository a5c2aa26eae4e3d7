import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import type { PlacedRequest, Placement, Wanted } from '../downstream/placement.ts';
import { assertNever, type BridgeError } from '../errors.ts';
import { principalOf } from '../http/auth/callers.ts';
import type { ServerSpeech } from '../relay/observer.ts';
import type { SessionRegistry, StoredSession } from '../relay/sessions/session-registry.ts';
import type { StoredReplay } from '../relay/sessions/session-storage.ts';
import type { SharedState } from '../relay/shared-state.ts';
import type { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { CallFinder } from './forwarding/call-finder.ts';
import type { LeavingStage } from './forwarding/passed-request.ts';
import { type Router, refuseWhileLeaving } from './forwarding/router.ts';
import { SessionFinder, type TakenOver } from './forwarding/session-finder.ts';
import type { ClusterLimits } from './limits/cluster-limits.ts';
import { type CountedRegistries, ProcessLimit, ServerLimits } from './limits/server-limits.ts';
import type { CallerOwners } from './ownership/caller-owners.ts';
import type { Cluster } from './ownership/cluster.ts';
import { SessionRecords } from './stored/session-records.ts';
import { SharedVerdict } from './stored/shared-verdict.ts';
import { StoredOutcomes } from './stored/stored-outcomes.ts';

/** A server of this bridge that the other replicas serve, too. */
export interface ServerToReplicate {
  /** The name of the server, which is the same on all replicas. */
  readonly name: string;
  readonly config: ServerConfig;
  readonly callers: {
    /** True if callers share nothing, because they cannot be told apart. */
    readonly areKeptApart: boolean;
    readonly haveNames: boolean;
  };
  /** Detected protocols of the server. */
  readonly speech: ServerSpeech;
  /** Returns its processes. Called only once they can be started. */
  readonly children: () => Pick<ChildLimit, 'taken'>;
  readonly deps: Deps;
}

/** The sessions and calls of the server at this replica. */
export interface ServedHere extends CountedRegistries {
  readonly sessions: SessionRegistry;
  /** Continues a session that another replica had. Throws a BridgeError if no session slot is free here. */
  restore(session: StoredSession, replay: StoredReplay, token: number): void;
}

interface ReplicaParts {
  readonly cluster: Cluster;
  readonly router: Router;
  readonly owners: CallerOwners;
  /** Limits of all replicas together; undefined: each replica has its own. */
  readonly limits: ClusterLimits | undefined;
  readonly stage: () => LeavingStage;
  readonly onEnded: () => void;
}

/** A server of both eras is addressed in the client's era. */
const MODERN_CLIENT = { era: 'modern', revision: undefined } as const;

/**
 * A server as the replicas serve it together: the state that they share, and the replica that serves each request.
 */
export class ReplicatedServer implements Placement {
  readonly state: SharedState & { readonly limits: ServerLimits | undefined };
  /** Limit of its processes at all replicas together; undefined: each replica has its own. */
  readonly processes: ProcessLimit | undefined;
  readonly #server: ServerToReplicate;
  readonly #parts: ReplicaParts;
  /** Storage of its sessions; undefined: they cannot move, as those that are processes. */
  readonly #records: SessionRecords | undefined;
  /** Verdict on the server's era that replicas share; undefined: the era does not decide where calls are served. */
  readonly #verdict: SharedVerdict | undefined;
  readonly #sessions: SessionFinder;
  readonly #calls: CallFinder;
  /** Undefined until the server is started. */
  #here: ServedHere | undefined;

  constructor(server: ServerToReplicate, parts: ReplicaParts) {
    const { name, config, callers, children, deps } = server;
    const { log, clock } = deps;
    const { cluster, limits, owners, stage } = parts;
    const { kind } = config.target;
    const isProcess = kind === 'command';
    // Sessions of the aggregate are made of sessions with its members, some of which are processes.
    const canMove = !isProcess && kind !== 'aggregate';
    this.#server = server;
    this.#parts = parts;
    const ttlMs = 2 * config.sessions.sessionTimeoutMs;
    this.#records = canMove ? new SessionRecords({ cluster, server: name, ttlMs, clock, log }) : undefined;
    const { haveNames } = callers;
    this.state = {
      sessions: this.#records,
      outcomes: new StoredOutcomes({ cluster, server: name, clock, log }),
      limits: limits && new ServerLimits({ limits, name, config, haveNames, registries: () => this.#here }),
    };
    const total = config.limits.maxChildren;
    this.processes = limits && isProcess ? new ProcessLimit(limits, { name, total, children }) : undefined;
    this.#verdict = createVerdict(server, cluster);
    this.#sessions = new SessionFinder({
      cluster,
      stage,
      has: (id) => this.#here?.sessions.has(id) === true,
      takeOver: this.#records && ((id, request) => this.#takeOver(id, request)),
    });
    this.#calls = new CallFinder({ cluster, owners, stage, ownedName: (principal) => this.#ownedName(principal) });
  }

  /** Called once, when the server is started. */
  begin(here: ServedHere): void {
    this.#here = here;
  }

  // ---- requests

  place(wanted: Wanted, placed: PlacedRequest): void {
    const { router } = this.#parts;
    const { request } = placed;
    switch (wanted.kind) {
      case 'session':
        return router.route(() => this.#sessions.search(wanted.id, request), placed);
      case 'nothing':
        return serveAfter(this.#beforeSession(request), placed.response, placed.serve);
      case 'message': {
        const { frame } = wanted;
        const waiting = { ...placed, serve: () => this.#serveCall(placed) };
        const route = (): void => router.route(() => this.#calls.search(frame, request), waiting, frame);
        return serveAfter([this.#verdict?.look()], placed.response, route);
      }
      default:
        return assertNever(wanted);
    }
  }

  refuseMoved(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#records === undefined || this.#parts.stage() === 'staying') return false;
    refuseWhileLeaving({ request, response });
    return true;
  }

  #serveCall({ request, response, serve }: PlacedRequest): void {
    serveAfter([this.state.limits?.beforeCall(request), this.processes?.beforeStart()], response, serve);
  }

  #beforeSession(request: IncomingMessage): Reservations {
    return [this.state.limits?.beforeSession(request), this.processes?.beforeStart()];
  }

  /**
   * Returns the name under which one replica owns a caller's calls; undefined: any replica may serve them. Callers
   * without names share nothing, so their calls need no owner. Neither do calls to a remote server of the modern era,
   * which takes any call from anywhere. Each replica has its own processes, though, and one process may not know what
   * another has handed out. Until its era is known, a server is assumed to remember its callers.
   */
  #ownedName(principal: string): string | undefined {
    const { name, callers } = this.#server;
    if (callers.areKeptApart || this.#verdict?.isModern === true) return undefined;
    return `caller ${JSON.stringify([name, principal])}`;
  }

  async #takeOver(id: string, request: IncomingMessage): Promise<TakenOver> {
    if (this.#records === undefined || this.#here === undefined) return { kind: 'unknown' };
    const principal = principalOf(request);
    await Promise.all(this.#beforeSession(request));
    const taken = await this.#records.take(id, principal);
    if (taken.kind !== 'taken') return taken;
    const client = { transport: 'streamable-http', era: 'legacy', principal, environment: undefined } as const;
    try {
      this.#here.restore({ id, state: taken.state, client }, taken.replay, taken.token);
    } catch (thrown) {
      // Another replica may have a free slot for the session.
      await this.#records.handedOver(id);
      throw thrown;
    }
    this.#server.deps.log.info({ session: id.slice(0, 6) }, 'continuing a session whose replica is gone');
    return { kind: 'here' };
  }

  // ---- the end of sessions

  /**
   * Called when other replicas tell clients that the sessions under this replica's former id are gone. Sessions that
   * can move were ended before.
   */
  died(owner: string, reason: BridgeError): void {
    if (this.#records !== undefined) return;
    const { tags } = this.#parts.cluster;
    this.#here?.sessions.abandon(reason, (id) => tags.ownerOf(id)?.id === owner);
  }

  /**
   * Called when other replicas may have taken over the sessions of this one. Sessions that are processes cannot be
   * taken over.
   */
  lost(reason: BridgeError): void {
    if (this.#records === undefined) return;
    this.#records.lost();
    this.#here?.sessions.abandon(reason);
  }

  /** Hands over to other replicas what they can continue. */
  async handOver(graceMs: number, reason: BridgeError): Promise<void> {
    await this.#here?.sessions.handOver(graceMs, reason);
  }

  /** Ends the part of sessions and calls, after these have ended. May be called twice. */
  end(): void {
    this.#records?.close();
    this.state.limits?.close();
    this.#parts.onEnded();
  }

  /** Gives back the processes, after these have ended. */
  close(): void {
    this.end();
    this.processes?.close();
  }
}

function createVerdict(
  { name, config: { target }, callers, speech, deps }: ServerToReplicate,
  cluster: Cluster,
): SharedVerdict | undefined {
  if (target.kind !== 'url' || callers.areKeptApart) return undefined;
  const server = JSON.stringify([name, target.url.href]);
  const isKnown = (): boolean => speech.spokenTo(MODERN_CLIENT)?.era === 'modern';
  return new SharedVerdict({ cluster, server, isKnown, clock: deps.clock });
}

/** Answers of other replicas that a request waits for; undefined: no wait is needed. */
type Reservations = readonly (Promise<unknown> | undefined)[];

/** Serves a request after the other replicas have answered, or at once if there is nothing to ask. */
function serveAfter(asked: Reservations, response: ServerResponse, serve: () => void): void {
  const waiting = asked.filter((each) => each !== undefined);
  if (waiting.length === 0) return serve();
  void Promise.all(waiting).then(() => {
    if (!response.destroyed) serve();
  });
}
