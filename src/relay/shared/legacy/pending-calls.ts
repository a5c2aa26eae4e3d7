import { CellMap } from '../../../collections/short-lived-values.ts';
import type { JsonRpcId } from '../../../wire/frame.ts';
import type { Exchange } from '../../exchange.ts';
import type { LegacyClient } from './legacy-client.ts';

/** The end of a call: answered with a result, with an error or not at all, or given up by its client. */
export type CallOutcome = 'succeeded' | 'failed' | 'withdrawn';

/** A request on its way through the shared link, and how to turn its answer back into the client's. */
export interface PendingCall {
  readonly client: LegacyClient;
  readonly exchange: Exchange;
  /** The exchange of the request on the shared link, where its transport can tell what belongs to it. */
  readonly upstream: Exchange | undefined;
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
  | { readonly kind: 'one'; readonly client: LegacyClient; readonly exchange: Exchange | undefined }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'ambiguous' };

export type SoleOne = Extract<Owner, { kind: 'one' }>;

/** The open calls of all clients of a shared server, by the id they have on its link. */
export class PendingCalls {
  readonly #calls = new CellMap<number, PendingCall>();

  get size(): number {
    return this.#calls.size;
  }

  add(upstreamId: number, call: PendingCall): void {
    this.#calls.set(upstreamId, call);
    call.client.openCalls += 1;
  }

  get(upstreamId: unknown): PendingCall | undefined {
    return typeof upstreamId === 'number' ? this.#calls.get(upstreamId) : undefined;
  }

  /** The call of this id as the owner of a message. */
  ownerWithId(upstreamId: JsonRpcId): SoleOne | undefined {
    const call = this.get(upstreamId);
    return call && { kind: 'one', client: call.client, exchange: call.exchange };
  }

  take(upstreamId: unknown): PendingCall | undefined {
    const call = this.get(upstreamId);
    if (call !== undefined) this.#delete(call);
    return call;
  }

  /** The only open call, if there is exactly one. */
  takeSole(): PendingCall | undefined {
    return this.#calls.size === 1 ? this.takeAll()[0] : undefined;
  }

  takeAll(): readonly PendingCall[] {
    const calls = [...this.#calls.values()];
    for (const call of calls) this.#delete(call);
    return calls;
  }

  takeOf(client: LegacyClient): readonly PendingCall[] {
    if (client.openCalls === 0) return [];
    const calls = [...this.#calls.values()].filter((call) => call.client === client);
    for (const call of calls) this.#delete(call);
    return calls;
  }

  #delete({ client, exchange }: PendingCall): void {
    if (this.#calls.delete(exchange.upstreamId)) client.openCalls -= 1;
  }

  /**
   * Returns the client that has all open calls. A message of the server about no particular call is taken to be about
   * these.
   */
  owner(): Owner {
    return ownerOf(this.#calls.values());
  }

  /** The calls of all clients that meet the condition, in the order they were sent. */
  where(isMeant: (call: PendingCall) => boolean): readonly PendingCall[] {
    return [...this.#calls.values()].filter(isMeant);
  }

  /** Does what `owner` does, with the calls of only those clients that meet the condition. */
  ownerAmong(isMeant: (client: LegacyClient) => boolean): Owner {
    return ownerOf([...this.#calls.values()].filter(({ client }) => isMeant(client)));
  }
}

/** The latest call's exchange when all of them are one client's. */
function ownerOf(calls: Iterable<PendingCall>): Owner {
  let latest: PendingCall | undefined;
  for (const call of calls) {
    if (latest !== undefined && latest.client !== call.client) return { kind: 'ambiguous' };
    latest = call;
  }
  return latest === undefined ? { kind: 'nobody' } : { kind: 'one', client: latest.client, exchange: latest.exchange };
}
