import type { IncomingMessage } from 'node:http';
import { RecentNames } from '../../collections/bounded-collections.ts';
import { toBridgeError } from '../../errors.ts';
import { isPassed } from '../../http/auth/callers.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { LeavingStage } from './passed-request.ts';
import type { FailedOwner, Place, Search } from './router.ts';

/** Takes over a session whose owner is gone. Rejects with a BridgeError. */
export type TakeOver = (id: string, request: IncomingMessage) => Promise<TakenOver>;

export type TakenOver =
  | { readonly kind: 'here' }
  | { readonly kind: 'owned'; readonly owner: Owner }
  | { readonly kind: 'unknown' };

export interface SessionFinderOptions {
  readonly cluster: Cluster;
  readonly stage: () => LeavingStage;
  /** Returns true if the session is open on this replica. */
  readonly has: (id: string) => boolean;
  /** Undefined: sessions of this server end with their owner. */
  readonly takeOver: TakeOver | undefined;
}

/** Bounds of the moved sessions whose new owner is remembered. Each id has up to 512 characters. */
const MOVED_LIMITS = { count: 10_000, length: 5_000_000 };

/** Finds the replica that has a session of one server. */
export class SessionFinder {
  readonly #options: SessionFinderOptions;
  /** The latest known owners of sessions that another replica has taken over. */
  readonly #moved = new RecentNames<Owner>(MOVED_LIMITS);
  readonly #taking = new Map<string, Promise<TakenOver>>();

  constructor(options: SessionFinderOptions) {
    this.#options = options;
  }

  search(id: string, request: IncomingMessage): Search {
    const { cluster, takeOver, has, stage } = this.#options;
    if (has(id)) return here(this.#placeHere());
    const owner = cluster.tags.ownerOf(id);
    if (owner === undefined) return here('here');
    const known = this.#moved.get(id) ?? owner;
    const wasHere = cluster.wasCalled(owner.id);
    // Another replica has passed the request on, or this one is the known owner under its current or a former identity.
    const hasCome = isPassed(request) || known.id === cluster.self.id || (known === owner && wasHere);
    if (takeOver !== undefined && hasCome && stage() !== 'staying') return here('leaving');
    if (owner.id === cluster.self.id) return here(this.#placeHere());
    if (takeOver === undefined) return wasHere ? here('here') : this.#searchOf(id, request, known);
    // A session that was here is in the store, or no longer exists.
    return this.#searchOf(id, request, known, hasCome ? { owner, why: 'not-here' } : undefined);
  }

  #placeHere(): Place {
    const { cluster, takeOver } = this.#options;
    // Without a valid lease another replica may have taken over the session.
    return takeOver !== undefined && !cluster.isHeld ? 'not-held' : 'here';
  }

  #searchOf(id: string, request: IncomingMessage, known: Owner, failed?: FailedOwner): Search {
    return { failed, find: (last) => (last === undefined ? known : this.#find(id, request, last.owner)) };
  }

  async #find(id: string, request: IncomingMessage, failed: Owner): Promise<Place> {
    if (this.#options.has(id)) return this.#found(id);
    const taken = await this.#take(id, request, failed);
    if (taken.kind === 'here') return this.#found(id);
    if (taken.kind === 'owned') {
      if (taken.owner.id !== failed.id) this.#moved.set(id, taken.owner);
      return taken.owner;
    }
    // The replica that passed the request on has already tried the other replicas.
    if (isPassed(request)) return this.#found(id);
    const judged = await this.#judge(failed);
    return judged.kind === 'owned' ? judged.owner : this.#found(id);
  }

  #found(id: string): Place {
    this.#moved.delete(id);
    return 'here';
  }

  /** Requests for a session that is being taken over wait for it together. */
  async #take(id: string, request: IncomingMessage, failed: Owner): Promise<TakenOver> {
    const { takeOver } = this.#options;
    if (takeOver === undefined) return this.#judge(failed);
    const taking = this.#taking.get(id) ?? takeOver(id, request).finally(() => this.#taking.delete(id));
    this.#taking.set(id, taking);
    try {
      return await taking;
    } catch (thrown) {
      const error = toBridgeError(thrown);
      // A session that cannot be continued counts as unknown, so that its client opens another.
      if (error.code === 'ERR_SESSION_UNKNOWN') return { kind: 'here' };
      throw error;
    }
  }

  async #judge(owner: Owner): Promise<TakenOver> {
    const { cluster } = this.#options;
    if (cluster.wasCalled(owner.id)) return { kind: 'unknown' };
    const verdict = await cluster.peers.judge(owner.id);
    return verdict === 'dead' ? { kind: 'unknown' } : { kind: 'owned', owner };
  }
}

/** A search that needs no other replica. */
function here(place: Place): Search {
  return { failed: undefined, find: () => place };
}
