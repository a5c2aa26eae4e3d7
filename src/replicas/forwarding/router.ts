import type { Deps } from '../../deps.ts';
import type { PlacedRequest } from '../../downstream/placement.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { authenticatedNameOf, isPassed } from '../../http/auth/callers.ts';
import { provideBody } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import type { JsonRpcId } from '../../wire/frame.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { Forwarder } from './forwarder.ts';
import { respondNotHere } from './passed-request.ts';

/**
 * The replica that serves a request.
 * - `here`: this one.
 * - `leaving`: this one, which is shutting down and has handed it over, or is about to.
 * - `not-held`: this one, but it has been out of touch for so long that another may have taken over.
 */
export type Place = 'here' | 'leaving' | 'not-held' | Owner;

/** An owner that did not serve a request, and has done nothing for it. */
export interface FailedOwner {
  readonly owner: Owner;
  readonly why: 'unreachable' | 'not-here';
}

/** Finds the replica that has a session, a call that goes on, or the calls of a caller. */
export interface Search {
  /** An owner that is known from the start not to have what is sought; undefined for most searches. */
  readonly failed: FailedOwner | undefined;
  /**
   * Returns the place, at once if this replica knows it. Reads the store otherwise, and takes over what its owner has
   * left. Rejects with a BridgeError.
   * @param failed the owner that was found before
   */
  find(failed: FailedOwner | undefined): Place | Promise<Place>;
}

export interface RouterOptions {
  readonly cluster: Pick<Cluster, 'confirm' | 'peers' | 'leaseMs'>;
  readonly forwarder: Pick<Forwarder, 'forward'>;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

/** A request on its way to the replica that serves it. */
interface Travel extends PlacedRequest {
  readonly search: Search;
  /** The message in the body, if it was read before the request was routed. */
  readonly message: ReadMessage | undefined;
  /** The body, if it was read while the request was routed. */
  body: Buffer | undefined;
  /** Until this time the replica may still be found. */
  readonly deadlineMs: number;
}

/** A message in a body that was read before the request is routed. */
export interface ReadMessage {
  readonly id: JsonRpcId | undefined;
  readonly bytes: Buffer;
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

/**
 * Brings each request to the replica that serves it: forwards it to the owner that a search finds, and searches on
 * while that owner does not have it or cannot be reached.
 */
export class Router {
  readonly #options: RouterOptions;
  #waiting = 0;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /**
   * Serves the request synchronously if it is known to belong here and this replica's lease needs no confirmation.
   * @param createSearch called once the lease is confirmed
   * @param message the body, if it was read already
   */
  route(createSearch: () => Search, placed: PlacedRequest, message?: ReadMessage): void {
    const confirming = this.#options.cluster.confirm();
    if (confirming === undefined) return this.#route(createSearch(), placed, message);
    void confirming.then(() => {
      if (!placed.response.destroyed) this.#route(createSearch(), placed, message);
    });
  }

  #route(search: Search, placed: PlacedRequest, message: ReadMessage | undefined): void {
    const { cluster, deps } = this.#options;
    const place = search.failed === undefined ? search.find(undefined) : undefined;
    if (place === 'here') return placed.serve();
    const travel: Travel = {
      ...{ search, request: placed.request, response: placed.response, serve: placed.serve },
      ...{ message, body: undefined },
      deadlineMs: deps.clock.now() + WAITED_LEASES * cluster.leaseMs,
    };
    if (place === undefined) return void this.#seek(travel, search.failed as FailedOwner);
    if (!(place instanceof Promise)) return this.#go(travel, place);
    place.then(
      (found) => this.#go(travel, found),
      (thrown: unknown) => this.#fail(travel, thrown),
    );
  }

  #go(travel: Travel, place: Place): void {
    const { request, response } = travel;
    if (response.destroyed) return;
    switch (place) {
      case 'here':
        if (travel.body !== undefined) provideBody(request, travel.body);
        return travel.serve();
      case 'leaving':
        return refuseWhileLeaving(travel);
      case 'not-held':
        return respondError(response, NOT_HELD);
    }
    // The replica that passed the request on goes on searching.
    if (isPassed(request)) return respondNotHere(response);
    const { cluster, forwarder } = this.#options;
    if (cluster.peers.isDead(place.id)) return void this.#seek(travel, { owner: place, why: 'unreachable' });
    const forwarded = {
      request,
      response,
      principal: authenticatedNameOf(request),
      body: travel.message?.bytes ?? travel.body,
    };
    forwarder.forward(place, forwarded, (outcome) => {
      if (outcome.kind === 'responded') return;
      if (outcome.kind === 'not-here') travel.body = outcome.body ?? travel.body;
      void this.#seek(travel, { owner: place, why: outcome.kind });
    });
  }

  /** Searches on after an owner has failed. An owner that is found again is tried again a little later. */
  async #seek(travel: Travel, failed: FailedOwner): Promise<void> {
    const { clock } = this.#options.deps;
    const { search, request, response, deadlineMs } = travel;
    if (this.#waiting >= MAX_WAITING) return respondError(response, TOO_MANY_WAIT, travel.message?.id);
    this.#waiting += 1;
    try {
      while (!response.destroyed) {
        const place = await search.find(failed);
        if (typeof place === 'string' || place.id !== failed.owner.id) return this.#go(travel, place);
        if (clock.now() > deadlineMs) return respondError(response, UNREACHABLE, travel.message?.id);
        await this.#pause();
        if (!isPassed(request)) return this.#go(travel, place);
      }
    } catch (thrown) {
      this.#fail(travel, thrown);
    } finally {
      this.#waiting -= 1;
    }
  }

  #pause(): Promise<void> {
    const { cluster, deps } = this.#options;
    return new Promise((resolve) => void deps.clock.after(cluster.leaseMs / POLLS, resolve));
  }

  #fail({ response, message }: Travel, thrown: unknown): void {
    const error = toBridgeError(thrown);
    if (error.code === 'ERR_INTERNAL') this.#options.deps.log.error({ err: error.cause }, error.message);
    if (!response.destroyed) respondError(response, error, message?.id);
  }
}

/** Tells the sender of a request that another replica serves it. */
export function refuseWhileLeaving({ request, response }: Pick<PlacedRequest, 'request' | 'response'>): void {
  if (isPassed(request)) respondNotHere(response);
  else respondError(response, LEAVING);
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
const UNREACHABLE = new BridgeError(
  'ERR_CLUSTER_OWNER',
  'The replica that this request is for is running, but cannot be reached from this one; nothing was done. Make sure that replicas reach each other at the addresses of --advertise.',
  RETRY,
);
const TOO_MANY_WAIT = new BridgeError(
  'ERR_CLUSTER_OWNER',
  `${MAX_WAITING} requests wait to learn what has become of the replica that had their session, the most allowed; nothing was done, try again later.`,
  RETRY,
);
