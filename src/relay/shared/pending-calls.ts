import { isInteractive } from '../../mcp/methods.ts';
import type { Exchange } from '../exchange.ts';
import type { Seat } from './seat.ts';

/** A request on its way through the shared link, and how to turn its answer back into the client's. */
export interface PendingCall {
  readonly seat: Seat;
  readonly exchange: Exchange;
  /** The client's id and progress token as it wrote them. */
  readonly idToken: Buffer;
  readonly progressToken: Buffer | undefined;
  /** Called when the server has answered. */
  readonly answered: ((succeeded: boolean) => void) | undefined;
}

/** To whom a message of the server belongs. */
export type Owner =
  | { readonly kind: 'one'; readonly seat: Seat; readonly exchange: Exchange | undefined }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'ambiguous' };

/** The open calls of all clients of a shared server, by the id they have on its link. */
export class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();

  add(upstreamId: number, call: PendingCall): void {
    this.#calls.set(upstreamId, call);
  }

  get(upstreamId: unknown): PendingCall | undefined {
    return typeof upstreamId === 'number' ? this.#calls.get(upstreamId) : undefined;
  }

  take(upstreamId: unknown): PendingCall | undefined {
    const call = this.get(upstreamId);
    if (call !== undefined) this.#calls.delete(call.exchange.upstreamId);
    return call;
  }

  takeAll(): readonly PendingCall[] {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    return calls;
  }

  takeOf(seat: Seat): readonly PendingCall[] {
    const calls = [...this.#calls.values()].filter((call) => call.seat === seat);
    for (const call of calls) this.#calls.delete(call.exchange.upstreamId);
    return calls;
  }

  /** Whose calls are open: what the server says about no call in particular is taken to be about these. */
  owner(): Owner {
    return ownerOf(this.#calls.values());
  }

  /**
   * Who is being asked by a request of the server. Only some methods ask at all; if any such call is open, they must
   * all belong to one client, also those that wait for it already: a call may ask twice. Guessing between two clients
   * would show one the other's question.
   */
  asker(): Owner {
    const interactive = [...this.#calls.values()].filter((call) => isInteractive(call.exchange.method));
    const owner = interactive.length > 0 ? ownerOf(interactive) : this.owner();
    if (owner.kind !== 'one') return owner;
    const free = interactive.findLast((call) => call.exchange.openQuestions === 0);
    return free === undefined ? owner : { ...owner, exchange: free.exchange };
  }
}

/** The latest call's exchange when all of them are one client's. */
function ownerOf(calls: Iterable<PendingCall>): Owner {
  let latest: PendingCall | undefined;
  for (const call of calls) {
    if (latest !== undefined && latest.seat !== call.seat) return { kind: 'ambiguous' };
    latest = call;
  }
  return latest === undefined ? { kind: 'nobody' } : { kind: 'one', seat: latest.seat, exchange: latest.exchange };
}
