import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Cluster } from '../../cluster/cluster.ts';
import type { Owner } from '../../cluster/owner-tags.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { authenticatedNameOf } from '../../http/auth/callers.ts';
import { provideBody } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import type { Forwarder } from './forwarder.ts';
import { hasHopped, type LeavingStage, respondNotHere } from './hops.ts';

/** The sessions of one server, as far as it matters where they are. */
export interface RoutedSessions {
  /** It is open here. */
  has(id: string): boolean;
  /** How a session comes here whose owner is gone; undefined: it ends with its owner. */
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

/** One request on its way to where its session is. */
interface Travel {
  readonly id: string;
  readonly sessions: RoutedSessions;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Serves it here. */
  readonly serve: () => void;
  /** What was read of it on the way; undefined: nothing. */
  body: Buffer | undefined;
  /** Until then its session may still be found. */
  readonly deadlineMs: number;
}

/** Requests that wait until it is known what has become of an owner. */
const MAX_WAITING = 2000;
/** In parts of the time a replica may be silent for. */
const POLLS = 12;
/** It takes one lease, from the first look on, to know that a replica is dead; and a little for the looking. */
const WAITED_LEASES = 2;
/** Where sessions are that have moved. */
const MAX_MOVED = 10_000;

/** Leads each request of a session to the replica that has it; decided before the transport sees the request. */
export class SessionRouter {
  readonly #options: SessionRouterOptions;
  readonly #moved = new Map<string, Owner>();
  #waiting = 0;

  constructor(options: SessionRouterOptions) {
    this.#options = options;
  }

  /** Responds to a request of a session that goes on at another replica, or is about to. False: this replica stays. */
  refuseWhileLeaving(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#options.stage() === 'staying') return false;
    if (hasHopped(request)) respondNotHere(response);
    else respondError(response, LEAVING);
    return true;
  }

  /** Calls `serve` at once where the session is here, or nowhere, and no other replica can have said otherwise. */
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
      // Others might have taken it over by now.
      if (mayMove && !cluster.isHeld) respondError(response, NOT_HELD);
      else serve();
    };
    if (sessions.has(id)) return serveIfHeld();
    const owner = cluster.tags.ownerOf(id);
    if (owner === undefined) return serve();
    const known = this.#moved.get(id) ?? owner;
    const wasHere = cluster.wasCalled(owner.id);
    // Another replica expects it here, or has nobody else to ask.
    const hasCome = hasHopped(request) || known.id === cluster.self.id || (known === owner && wasHere);
    if (mayMove && hasCome && this.refuseWhileLeaving(request, response)) return;
    if (owner.id === cluster.self.id) return serveIfHeld();
    if (!mayMove && wasHere) return serve();
    if (!mayMove && hasHopped(request)) return respondNotHere(response);
    const deadlineMs = deps.clock.now() + WAITED_LEASES * cluster.leaseMs;
    const sought = { id, sessions, request, response, serve, body: undefined, deadlineMs };
    // What was here is in the store, or nowhere.
    if (hasCome) return void this.#seek(sought, owner);
    this.#go(sought, known);
  }

  #go(travel: Travel, owner: Owner): void {
    const { cluster, forwarder } = this.#options;
    const { request, response, body } = travel;
    // What is known to be gone is not asked.
    if (cluster.peers.isDead(owner.id)) return void this.#seek(travel, owner);
    const forwarded = { request, response, principal: authenticatedNameOf(request), body };
    forwarder.forward(owner, forwarded, (outcome) => {
      if (outcome.kind === 'responded') return;
      if (outcome.kind === 'not-here') travel.body = outcome.body ?? travel.body;
      void this.#seek(travel, owner);
    });
  }

  /** The owner that was known does not have it, or cannot be reached. */
  async #seek(travel: Travel, owner: Owner): Promise<void> {
    if (this.#waiting >= MAX_WAITING) return respondError(travel.response, TOO_MANY_WAIT);
    this.#waiting += 1;
    try {
      await this.#find(travel, owner);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      // A session that cannot be gone on with is one that does not exist: its client opens another.
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
      // A replica that has passed it on has asked everybody else.
      if (taken.kind === 'unknown' && (hasHopped(request) || (await this.#judge(owner)).kind === 'unknown')) {
        return this.#serveHere(travel);
      }
      if (taken.kind === 'owned' && taken.owner.id !== owner.id) {
        this.#remember(id, taken.owner);
        if (hasHopped(request)) return respondNotHere(response);
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
