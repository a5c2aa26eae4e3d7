import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { authenticatedNameOf, isPassed } from '../../http/auth/callers.ts';
import { provideBody } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { Forwarder } from './forwarder.ts';
import { type LeavingStage, respondNotHere } from './passed-request.ts';

/** The sessions of one server on this replica. */
export interface RoutedSessions {
  /** True if the session is open on this replica. */
  has(id: string): boolean;
  /** Takes over a session whose owner is gone. Undefined if sessions of this server end with their owner. */
  readonly takeOver: TakeOver | undefined;
}

/** Rejects with a BridgeError. */
export type TakeOver = (id: string, request: IncomingMessage) => Promise<TakenOver>;

export type TakenOver =
  | { readonly kind: 'here' }
  | { readonly kind: 'owned'; readonly owner: Owner }
  | { readonly kind: 'unknown' };

export interface SessionRouterOptions {
  readonly cluster: Cluster;
  readonly forwarder: Pick<Forwarder, 'forward'>;
  readonly stage: () => LeavingStage;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

type RoutedRequest = Pick<Travel, 'sessions' | 'request' | 'response' | 'serve'>;

/** A request of a session that is routed to the session's replica. */
interface Travel {
  readonly id: string;
  readonly sessions: RoutedSessions;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Serves the request on this replica. */
  readonly serve: () => void;
  /** Body bytes read while routing, or undefined if the body has not been read. */
  body: Buffer | undefined;
  /** Until this time the session may still be found. */
  readonly deadlineMs: number;
}

/** Limit of requests that wait until the state of an owner is known. */
const MAX_WAITING = 2000;
/** Checks of an owner per lease. */
const POLLS = 12;
/**
 * Leases that a request waits. A replica is known to be dead one lease after the first check; the other lease allows
 * for slow checks.
 */
const WAITED_LEASES = 2;
/** Limit of moved sessions whose new owner is remembered. */
const MAX_MOVED = 10_000;

/** Routes each request of a session to the replica that has it, before the transport sees the request. */
export class SessionRouter {
  readonly #options: SessionRouterOptions;
  readonly #moved = new Map<string, Owner>();
  #waiting = 0;

  constructor(options: SessionRouterOptions) {
    this.#options = options;
  }

  /**
   * Rejects a request whose session another replica continues, or will continue, during this replica's shutdown.
   * Returns false if this replica is not shutting down.
   */
  refuseWhileLeaving(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#options.stage() === 'staying') return false;
    if (isPassed(request)) respondNotHere(response);
    else respondError(response, LEAVING);
    return true;
  }

  /**
   * Calls `serve` synchronously if the session is here or does not exist, and this replica's lease needs no
   * confirmation.
   */
  route(id: string, travel: RoutedRequest): void {
    const confirming = this.#options.cluster.confirm();
    if (confirming === undefined) return this.#route(id, travel);
    void confirming.then(() => {
      if (!travel.response.destroyed) this.#route(id, travel);
    });
  }

  #route(id: string, travel: RoutedRequest): void {
    const { cluster, deps } = this.#options;
    const { sessions, request, response, serve } = travel;
    const mayMove = sessions.takeOver !== undefined;
    const serveIfHeld = (): void => {
      // Without a valid lease another replica may have taken over the session.
      if (mayMove && !cluster.isHeld) respondError(response, NOT_HELD);
      else serve();
    };
    if (sessions.has(id)) return serveIfHeld();
    const owner = cluster.tags.ownerOf(id);
    if (owner === undefined) return serve();
    const known = this.#moved.get(id) ?? owner;
    const wasHere = cluster.wasCalled(owner.id);
    // True if another replica has forwarded the request here, or if this replica is the known owner under its current
    // or a former identity.
    const hasCome = isPassed(request) || known.id === cluster.self.id || (known === owner && wasHere);
    if (mayMove && hasCome && this.refuseWhileLeaving(request, response)) return;
    if (owner.id === cluster.self.id) return serveIfHeld();
    if (!mayMove && wasHere) return serve();
    if (!mayMove && isPassed(request)) return respondNotHere(response);
    const deadlineMs = deps.clock.now() + WAITED_LEASES * cluster.leaseMs;
    const sought = { id, sessions, request, response, serve, body: undefined, deadlineMs };
    // A session that was here is in the store, or no longer exists.
    if (hasCome) return void this.#seek(sought, owner);
    this.#go(sought, known);
  }

  #go(travel: Travel, owner: Owner): void {
    const { cluster, forwarder } = this.#options;
    const { request, response, body } = travel;
    // Requests are not forwarded to an owner that is known to be dead.
    if (cluster.peers.isDead(owner.id)) return void this.#seek(travel, owner);
    const forwarded = { request, response, principal: authenticatedNameOf(request), body };
    forwarder.forward(owner, forwarded, (outcome) => {
      if (outcome.kind === 'responded') return;
      if (outcome.kind === 'not-here') travel.body = outcome.body ?? travel.body;
      void this.#seek(travel, owner);
    });
  }

  /** Looks for the session after its known owner turned out not to have it or could not be reached. */
  async #seek(travel: Travel, owner: Owner): Promise<void> {
    if (this.#waiting >= MAX_WAITING) return respondError(travel.response, TOO_MANY_WAIT);
    this.#waiting += 1;
    try {
      await this.#find(travel, owner);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      // Treat a session that cannot be continued as unknown, so that its client opens another.
      if (error.code === 'ERR_SESSION_UNKNOWN') return this.#serveHere(travel);
      if (error.code === 'ERR_INTERNAL') this.#options.deps.log.error({ err: error.cause }, error.message);
      respondError(travel.response, error);
    } finally {
      this.#waiting -= 1;
    }
  }

  async #find(travel: Travel, owner: Owner): Promise<void> {
    const { cluster, deps } = this.#options;
    const { id, sessions, request, response } = travel;
    while (!response.destroyed) {
      if (sessions.has(id)) return this.#serveHere(travel);
      const taken = (await sessions.takeOver?.(id, request)) ?? (await this.#judge(owner));
      if (taken.kind === 'here') return this.#serveHere(travel);
      // The replica that forwarded the request has already tried the other replicas.
      if (taken.kind === 'unknown' && (isPassed(request) || (await this.#judge(owner)).kind === 'unknown')) {
        return this.#serveHere(travel);
      }
      if (taken.kind === 'owned' && taken.owner.id !== owner.id) {
        this.#remember(id, taken.owner);
        if (isPassed(request)) return respondNotHere(response);
        return this.#go(travel, taken.owner);
      }
      if (deps.clock.now() > travel.deadlineMs) return respondError(response, UNREACHABLE);
      await this.#pause(cluster.leaseMs / POLLS);
    }
  }

  async #judge(owner: Owner): Promise<TakenOver> {
    const { cluster } = this.#options;
    if (cluster.wasCalled(owner.id)) return { kind: 'unknown' };
    const verdict = await cluster.peers.judge(owner.id);
    return verdict === 'dead' ? { kind: 'unknown' } : { kind: 'owned', owner };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.deps.clock.after(ms, resolve));
  }

  #serveHere({ id, request, response, serve, body }: Travel): void {
    this.#moved.delete(id);
    if (response.destroyed) return;
    if (body !== undefined) provideBody(request, body);
    serve();
  }

  #remember(id: string, owner: Owner): void {
    this.#moved.delete(id);
    this.#moved.set(id, owner);
    for (const oldest of this.#moved.keys()) {
      if (this.#moved.size <= MAX_MOVED) return;
      this.#moved.delete(oldest);
    }
  }
}

const RETRY = { retryAfterMs: 1000 };
const LEAVING = new BridgeError(
  'ERR_SESSION_CLOSED',
  'This replica is shutting down, and the session goes on at another; send the request again.',
  RETRY,
);
const NOT_HELD = new BridgeError(
  'ERR_STORE_UNAVAILABLE',
  'This replica has not been able to reach the store for so long that another may have this session; try again later.',
  RETRY,
);
export const UNREACHABLE = new BridgeError(
  'ERR_CLUSTER_OWNER',
  'The replica that this request is for is running, but cannot be reached from this one; nothing was done. Make sure that replicas reach each other at the addresses of --advertise.',
  RETRY,
);
const TOO_MANY_WAIT = new BridgeError(
  'ERR_CLUSTER_OWNER',
  `${MAX_WAITING} requests wait to learn what has become of the replica that had their session, the most allowed; nothing was done, try again later.`,
  RETRY,
);
