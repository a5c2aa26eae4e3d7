import type { JsonRpcId } from '../../wire/frame.ts';
import type { Exchange } from '../exchange.ts';
import type { ModernSeat } from './modern-seat.ts';
import type { Subscription } from './subscription.ts';

/** A request on its way through the shared link, and how to turn what belongs to it back into the client's. */
export interface ModernCall {
  readonly seat: ModernSeat;
  readonly exchange: Exchange;
  readonly upstreamId: number;
  /** The client's id and progress token as it wrote them. */
  readonly idToken: Buffer;
  readonly progressToken: Buffer | undefined;
  /** It asked for log messages. */
  readonly wantsLogs: boolean;
  /** Set for `subscriptions/listen`. */
  readonly subscription: Subscription | undefined;
}

/** The open requests of all clients, by the id they have on the shared link. */
export class ModernCalls {
  readonly #calls = new Map<number, ModernCall>();

  get size(): number {
    return this.#calls.size;
  }

  add(call: ModernCall): void {
    this.#calls.set(call.upstreamId, call);
  }

  get(upstreamId: JsonRpcId | undefined): ModernCall | undefined {
    return typeof upstreamId === 'number' ? this.#calls.get(upstreamId) : undefined;
  }

  take(upstreamId: JsonRpcId | undefined): ModernCall | undefined {
    const call = this.get(upstreamId);
    if (call !== undefined) this.#calls.delete(call.upstreamId);
    return call;
  }

  takeOf(seat: ModernSeat): readonly ModernCall[] {
    const calls = [...this.#calls.values()].filter((call) => call.seat === seat);
    for (const call of calls) this.#calls.delete(call.upstreamId);
    return calls;
  }

  takeAll(): readonly ModernCall[] {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    return calls;
  }

  /**
   * The call that a log message must be about: a pipe does not say which, but a server logs only for those that asked.
   * [spec 2026-07-28 server/utilities/logging#per-request-log-level]
   */
  soleWithLogs(): ModernCall | undefined {
    let sole: ModernCall | undefined;
    for (const call of this.#calls.values()) {
      if (!call.wantsLogs) continue;
      if (sole !== undefined) return undefined;
      sole = call;
    }
    return sole;
  }
}
