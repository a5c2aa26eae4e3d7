import { CellMap } from '../../../collections/short-lived-values.ts';
import type { JsonRpcId } from '../../../wire/frame.ts';
import type { Call } from '../../call.ts';
import type { LegacyClient } from './legacy-client.ts';

/** The end of a call: answered with a result, with an error or not at all, or given up by its client. */
export type CallOutcome = 'succeeded' | 'failed' | 'withdrawn';

/** A call on its way through the shared link, and how to turn its answer back into the client's. */
export interface PendingCall {
  readonly client: LegacyClient;
  readonly call: Call;
  /** The call as it is made on the shared link, where the link's transport can tell what belongs to it. */
  readonly upstream: Call | undefined;
  /** The client's id and progress token as it wrote them. */
  readonly idToken: Buffer;
  readonly progressToken: Buffer | undefined;
  /** The size of the request. */
  readonly bytes: number;
  /** Called once when the call has ended, unless its client left. */
  readonly over: ((outcome: CallOutcome) => void) | undefined;
}

/** To whom a message of the server belongs. */
export type Owner =
  | { readonly kind: 'one'; readonly client: LegacyClient; readonly call: Call | undefined }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'ambiguous' };

export type SoleOne = Extract<Owner, { kind: 'one' }>;

/** The open calls of all clients of a shared server, by the id they have on its link. */
export class PendingCalls {
  readonly #byId = new CellMap<number, PendingCall>();

  get size(): number {
    return this.#byId.size;
  }

  add(upstreamId: number, pending: PendingCall): void {
    this.#byId.set(upstreamId, pending);
    pending.client.openCalls += 1;
  }

  get(upstreamId: unknown): PendingCall | undefined {
    return typeof upstreamId === 'number' ? this.#byId.get(upstreamId) : undefined;
  }

  /** The call of this id as the owner of a message. */
  ownerWithId(upstreamId: JsonRpcId): SoleOne | undefined {
    const pending = this.get(upstreamId);
    return pending && { kind: 'one', client: pending.client, call: pending.call };
  }

  take(upstreamId: unknown): PendingCall | undefined {
    const pending = this.get(upstreamId);
    if (pending !== undefined) this.#delete(pending);
    return pending;
  }

  /** The only open call, if there is exactly one. */
  takeSole(): PendingCall | undefined {
    return this.#byId.size === 1 ? this.takeAll()[0] : undefined;
  }

  takeAll(): readonly PendingCall[] {
    const all = [...this.#byId.values()];
    for (const pending of all) this.#delete(pending);
    return all;
  }

  takeOf(client: LegacyClient): readonly PendingCall[] {
    if (client.openCalls === 0) return [];
    const own = [...this.#byId.values()].filter((pending) => pending.client === client);
    for (const pending of own) this.#delete(pending);
    return own;
  }

  #delete({ client, call }: PendingCall): void {
    if (this.#byId.delete(call.upstreamId)) client.openCalls -= 1;
  }

  /**
   * Returns the client that has all open calls. A message of the server about no particular call is taken to be about
   * these.
   */
  owner(): Owner {
    return ownerOf(this.#byId.values());
  }

  /** The calls of all clients that meet the condition, in the order they were sent. */
  where(isMeant: (pending: PendingCall) => boolean): readonly PendingCall[] {
    return [...this.#byId.values()].filter(isMeant);
  }

  /** Does what `owner` does, with the calls of only those clients that meet the condition. */
  ownerAmong(isMeant: (client: LegacyClient) => boolean): Owner {
    return ownerOf([...this.#byId.values()].filter(({ client }) => isMeant(client)));
  }
}

/** Returns the client of all these calls, with the latest of them. */
function ownerOf(pendingCalls: Iterable<PendingCall>): Owner {
  let latest: PendingCall | undefined;
  for (const pending of pendingCalls) {
    if (latest !== undefined && latest.client !== pending.client) return { kind: 'ambiguous' };
    latest = pending;
  }
  return latest === undefined ? { kind: 'nobody' } : { kind: 'one', client: latest.client, call: latest.call };
}
