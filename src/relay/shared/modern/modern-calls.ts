import { CellMap } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import type { Exchange } from '../../exchange.ts';
import type { ClientLink } from '../client-link.ts';

/** Its state identifies it without keeping it in memory once it is closed. */
export type ModernClient = ClientLink<number>;

/**
 * One `subscriptions/listen` on a shared link. It outlives the server's process: a new one is asked again, with the
 * same words. [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure]
 */
export interface Subscription {
  /** The client's request. */
  readonly request: Frame;
  /** The client has had its acknowledgment; a later one says nothing new to it. */
  isAcknowledged: boolean;
}

/** A server may go on for so long about a call it was told to stop. */
const WITHDRAWN_MS = 10_000;
/** Withdrawn calls that are remembered. */
const MAX_WITHDRAWN = 1024;

/** A request on its way through the shared link, and how to turn what belongs to it back into the client's. */
export interface ModernCall {
  readonly client: ModernClient;
  /** Undefined: the owner of the link asked for itself, and knows the answer by its id. */
  readonly exchange: Exchange | undefined;
  readonly upstreamId: number;
  /** The client's id as decoded, and id and progress token as it wrote them. */
  readonly id: JsonRpcId;
  readonly idToken: Buffer;
  readonly progressToken: Buffer | undefined;
  /** The size of the request. */
  readonly bytes: number;
  /** It asked for log messages. */
  readonly wantsLogs: boolean;
  /** Set if the call is a `subscriptions/listen`. */
  readonly subscription: Subscription | undefined;
}

/** What tells whether a message may be about a call. */
export interface CallTraits {
  readonly wantsLogs: boolean;
  readonly subscription: Pick<Subscription, 'isAcknowledged'> | undefined;
}

/** Neither its request nor its client, which may be gone, with all that was kept for it. */
interface WithdrawnCall {
  readonly client: number;
  readonly traits: CallTraits;
  readonly untilMs: number;
}

/** The open requests of all clients, by the id they have on the shared link. */
export class ModernCalls {
  readonly #clock: Clock;
  readonly #calls = new CellMap<number, ModernCall>();
  /** Oldest first. */
  #withdrawn: WithdrawnCall[] = [];
  #subscriptions = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#calls.size;
  }

  get subscriptions(): number {
    return this.#subscriptions;
  }

  add(call: ModernCall): void {
    this.#calls.set(call.upstreamId, call);
    call.client.openCalls += 1;
    if (call.subscription !== undefined) this.#subscriptions += 1;
  }

  get(upstreamId: JsonRpcId | undefined): ModernCall | undefined {
    return typeof upstreamId === 'number' ? this.#calls.get(upstreamId) : undefined;
  }

  /** The call has ended. */
  take(upstreamId: JsonRpcId | undefined): ModernCall | undefined {
    const call = this.get(upstreamId);
    if (call !== undefined) this.#delete(call);
    return call;
  }

  /** The client gives the call up: the server may not have heard of it yet. */
  withdraw(call: ModernCall): void {
    this.#delete(call);
    const { client, wantsLogs, subscription } = call;
    const traits = { wantsLogs, subscription: subscription && { isAcknowledged: subscription.isAcknowledged } };
    this.#withdrawn.push({ client: client.state, traits, untilMs: this.#clock.now() + WITHDRAWN_MS });
    if (this.#withdrawn.length > MAX_WITHDRAWN) this.#withdrawn.shift();
  }

  #delete(call: ModernCall): void {
    this.#calls.delete(call.upstreamId);
    call.client.openCalls -= 1;
    if (call.subscription !== undefined) this.#subscriptions -= 1;
  }

  of(client: ModernClient): readonly ModernCall[] {
    if (client.openCalls === 0) return [];
    return [...this.#calls.values()].filter((call) => call.client === client);
  }

  all(): readonly ModernCall[] {
    return [...this.#calls.values()];
  }

  /** The server is gone, and nothing it was at work on can be heard of any more. */
  forgetWithdrawn(): void {
    this.#withdrawn = [];
  }

  /**
   * The only open call that a message without an id can be about. A call that was withdrawn a moment ago counts as long
   * as the server may still talk about it: what it says must not reach another client.
   */
  sole(mayBeAbout: (call: CallTraits) => boolean): ModernCall | undefined {
    let sole: ModernCall | undefined;
    for (const call of this.#calls.values()) {
      if (!mayBeAbout(call)) continue;
      if (sole !== undefined) return undefined;
      sole = call;
    }
    return sole !== undefined && this.#isRivalled(sole, mayBeAbout) ? undefined : sole;
  }

  #isRivalled({ client }: ModernCall, mayBeAbout: (call: CallTraits) => boolean): boolean {
    const nowMs = this.#clock.now();
    const firstKept = this.#withdrawn.findIndex(({ untilMs }) => untilMs > nowMs);
    this.#withdrawn = firstKept === -1 ? [] : this.#withdrawn.slice(firstKept);
    return this.#withdrawn.some((withdrawn) => withdrawn.client !== client.state && mayBeAbout(withdrawn.traits));
  }
}
