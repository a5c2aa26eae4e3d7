/** The calls that are open on a shared modern server, and which of them what it sends belongs to. */
import type { Logger } from 'pino';
import { CellMap } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import { assertNever } from '../../../errors.ts';
import {
  findCancelledId,
  findProgressOf,
  findSubscriptionId,
  rewriteProgress,
  rewriteSubscriptionId,
} from '../../../mcp/classify/correlators.ts';
import { ModernQuestions } from '../../../mcp/classify/modern-questions.ts';
import { missedChanges } from '../../../mcp/translate/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../../../mcp/vocabulary/meta.ts';
import { CANCELLED, LISTEN_ACKNOWLEDGED, LOG_MESSAGE, PROGRESS } from '../../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { asNumber, type Frame, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';
import type { Exchange } from '../../exchange.ts';
import type { ServerFault, UpstreamLink } from '../../ports.ts';
import type { SharedClient } from '../client-link.ts';

/**
 * A client of a shared modern server. The number in its state identifies the client, without keeping it in memory once
 * it has left.
 */
export type ModernClient = SharedClient<number>;

/**
 * A `subscriptions/listen` on a shared link. The subscription outlives the server's process: a new process is asked
 * again, in the same words. [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure]
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
  /** The client asked for log messages of this call. */
  readonly wantsLogs: boolean;
  /** Set if the call is a `subscriptions/listen`. */
  readonly subscription: Subscription | undefined;
}

/** The traits of a call by which a message may be about it or not. */
export interface CallTraits {
  readonly wantsLogs: boolean;
  readonly subscription: Pick<Subscription, 'isAcknowledged'> | undefined;
}

/** A call that its client has withdrawn. Its request and its client are not kept, since the client may be gone. */
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

/**
 * Takes what a shared modern server says and gives each message to the client it belongs to: by id, by token, by
 * subscription, or because only one call can be meant. Where that cannot be told, it goes to nobody.
 */
export class FromModernServer {
  readonly #calls: ModernCalls;
  readonly #log: Logger;
  readonly #questions = new ModernQuestions();

  constructor(calls: ModernCalls, log: Logger) {
    this.#calls = calls;
    this.#log = log;
  }

  take(_link: UpstreamLink, frame: Frame): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answer(frame);
      case 'notification':
        return this.#notification(frame);
      case 'request':
        // [spec 2026-07-28 transports/stdio#receiving-messages] must not be written, nor answered.
        return this.#questions.ignore(frame, this.#log);
      default:
        return assertNever(frame.kind);
    }
  }

  #answer(frame: Frame): void {
    const call = this.#takeCall(frame.id);
    if (call === undefined) return this.#log.debug({ id: frame.id }, 'server answered a request that is not open');
    const answer = withId(frame, call.idToken);
    deliver(call, (call.subscription && rewriteSubscriptionId(answer, call.idToken)) ?? answer);
  }

  /** Without an id it is about a request that could not be read; of what is open, only one may be that. */
  #takeCall(id: JsonRpcId | undefined): ModernCall | undefined {
    if (id !== undefined) return this.#calls.take(id);
    const sole = this.#calls.sole((call) => call.subscription?.isAcknowledged !== true);
    return this.#calls.take(sole?.upstreamId);
  }

  #notification(frame: Frame): void {
    const subscriptionId = findSubscriptionId(frame);
    if (subscriptionId !== undefined) return this.#subscribed(frame, this.#calls.get(subscriptionId.value));
    switch (frame.method) {
      case PROGRESS:
        return this.#progress(frame);
      case CANCELLED:
        return this.#listenEnded(frame);
      case LOG_MESSAGE:
        return this.#toSole(frame, ({ wantsLogs }) => wantsLogs);
      default:
        return this.#toSole(frame, ({ subscription }) => subscription === undefined);
    }
  }

  #subscribed(frame: Frame, call: ModernCall | undefined): void {
    if (call?.subscription === undefined) {
      return this.#log.debug({ method: frame.method }, 'notification dropped: it is of no open subscription');
    }
    if (frame.method === LISTEN_ACKNOWLEDGED) return acknowledged(frame, call, call.subscription);
    const rewritten = rewriteSubscriptionId(frame, call.idToken);
    if (rewritten !== undefined) deliver(call, rewritten);
  }

  #progress(frame: Frame): void {
    const token = findProgressOf(frame);
    const call = this.#calls.get(asNumber(token?.value));
    const rewritten = call?.progressToken && rewriteProgress(frame, call.progressToken, token);
    if (call !== undefined && rewritten !== undefined) deliver(call, rewritten);
  }

  /**
   * Another way for a server to end a subscription; its client gets the one that all clients know.
   * [spec 2026-07-28 basic/patterns/cancellation] must name a `subscriptions/listen`
   */
  #listenEnded(frame: Frame): void {
    const call = this.#calls.get(findCancelledId(frame)?.value);
    if (call?.subscription === undefined) return this.#log.debug('server cancelled what is no subscription');
    this.#calls.take(call.upstreamId);
    const { id, idToken } = call;
    const result = resultFrame(idToken, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } });
    deliver(call, rewriteSubscriptionId(result, idToken) ?? result);
  }

  #toSole(frame: Frame, mayBeAbout: (call: CallTraits) => boolean): void {
    const call = this.#calls.sole(mayBeAbout);
    if (call !== undefined) return deliver(call, frame);
    this.#log.debug(
      { method: frame.method },
      'notification dropped: it names no call, and not exactly one may be meant',
    );
  }

  fault(_link: UpstreamLink, { error, kind, id }: ServerFault): void {
    this.#log.error({ code: error.code }, error.message);
    if (kind === 'request' || kind === 'notification') return;
    const call = this.#takeCall(id);
    if (call !== undefined) deliver(call, errorFrame(call.idToken, rpcErrorOf(error)));
  }
}

/** The client is told once. A new process confirms it anew, and what changed in between was never reported. */
function acknowledged(frame: Frame, call: ModernCall, subscription: Subscription): void {
  if (subscription.isAcknowledged) {
    for (const change of missedChanges(subscription.request, frame, call.idToken)) deliver(call, change);
    return;
  }
  subscription.isAcknowledged = true;
  const rewritten = rewriteSubscriptionId(frame, call.idToken);
  if (rewritten !== undefined) deliver(call, rewritten);
}

function deliver({ client, exchange }: ModernCall, frame: Frame): void {
  client.listener.fromServer(frame, exchange);
}
