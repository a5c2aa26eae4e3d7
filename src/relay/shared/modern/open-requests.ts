/** The requests that are open on a shared modern server, and which of them what it sends belongs to. */
import type { Logger } from 'pino';
import { CellMap } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import { assertNever } from '../../../errors.ts';
import {
  findCanceledId,
  findProgressOf,
  findSubscriptionId,
  rewriteProgress,
  rewriteSubscriptionId,
} from '../../../mcp/classify/correlators.ts';
import { ModernQuestions } from '../../../mcp/classify/modern-questions.ts';
import { missedChanges } from '../../../mcp/translate/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../../../mcp/vocabulary/meta.ts';
import { CANCELED, LISTEN_ACKNOWLEDGED, LOG_MESSAGE, PROGRESS } from '../../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { asNumber, type Frame, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';
import type { Call } from '../../call.ts';
import { ModernCall } from '../../modern-call.ts';
import type { ServerFault, ServerListener, UpstreamLink } from '../../ports.ts';
import { deliver, SharedClient } from '../shared-client.ts';

/** Tells a client from the others, and may be kept longer than the client. */
type ClientKey = object;

/** A client with many requests, such as one on a pipe or a legacy client whose session is translated. */
export class ModernClient extends SharedClient {
  listener: ServerListener;
  readonly key: ClientKey = {};

  constructor(listener: ServerListener) {
    super();
    this.listener = listener;
  }
}

/** The sender of a request: a client that has joined the server, or the request itself, which comes alone. */
export type ModernSender = ModernClient | ModernCall;

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
export interface OpenRequest {
  readonly sender: ModernSender;
  readonly call: Call;
  /** The client's id and progress token as it wrote them. */
  readonly idToken: Buffer;
  readonly progressToken: Buffer | undefined;
  /** The size of the request. */
  readonly bytes: number;
  /** The client asked for log messages of this call. */
  readonly wantsLogs: boolean;
  /** Set if the call is a `subscriptions/listen`. */
  readonly subscription: Subscription | undefined;
}

/** The traits of a request by which a message may be about it or not. */
export interface RequestTraits {
  readonly wantsLogs: boolean;
  readonly subscription: Pick<Subscription, 'isAcknowledged'> | undefined;
}

/** A request that was withdrawn. Neither the request nor its sender is kept, since the sender may be gone. */
interface WithdrawnRequest {
  /** Undefined for a request that came alone. */
  readonly client: ClientKey | undefined;
  readonly traits: RequestTraits;
  readonly untilMs: number;
}

/** Undefined for a request that came alone, and so has no other from its client. */
function clientOf(sender: ModernSender): ClientKey | undefined {
  return sender instanceof ModernCall ? undefined : sender.key;
}

/** The open requests of all senders, by the id they have on the shared link. */
export class OpenRequests {
  readonly #clock: Clock;
  readonly #requests = new CellMap<number, OpenRequest>();
  /** Oldest first. */
  #withdrawn: WithdrawnRequest[] = [];
  #subscriptions = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get subscriptions(): number {
    return this.#subscriptions;
  }

  add(request: OpenRequest): void {
    this.#requests.set(request.call.upstreamId, request);
    this.#count(request, 1);
  }

  get(upstreamId: JsonRpcId | undefined): OpenRequest | undefined {
    return typeof upstreamId === 'number' ? this.#requests.get(upstreamId) : undefined;
  }

  /** The request has ended. */
  take(upstreamId: JsonRpcId | undefined): OpenRequest | undefined {
    const request = this.get(upstreamId);
    if (request !== undefined) this.#delete(request);
    return request;
  }

  /** The sender gives the request up: the server may not have heard of it yet. */
  withdraw(request: OpenRequest): void {
    this.#delete(request);
    const { sender, wantsLogs, subscription } = request;
    const traits = { wantsLogs, subscription: subscription && { isAcknowledged: subscription.isAcknowledged } };
    this.#withdrawn.push({ client: clientOf(sender), traits, untilMs: this.#clock.now() + WITHDRAWN_MS });
    if (this.#withdrawn.length > MAX_WITHDRAWN) this.#withdrawn.shift();
  }

  #delete(request: OpenRequest): void {
    this.#requests.delete(request.call.upstreamId);
    this.#count(request, -1);
  }

  #count({ sender, subscription }: OpenRequest, change: 1 | -1): void {
    if (!(sender instanceof ModernCall)) sender.openCalls += change;
    if (subscription !== undefined) this.#subscriptions += change;
  }

  of(sender: ModernSender): readonly OpenRequest[] {
    if (sender instanceof ModernCall) {
      const request = this.get(sender.upstreamId);
      return request === undefined ? [] : [request];
    }
    if (sender.openCalls === 0) return [];
    return [...this.#requests.values()].filter((request) => request.sender === sender);
  }

  all(): readonly OpenRequest[] {
    return [...this.#requests.values()];
  }

  /** The server is gone, and nothing it was at work on can be heard of anymore. */
  forgetWithdrawn(): void {
    this.#withdrawn = [];
  }

  /**
   * The only open request that a message without an id can be about. One that was withdrawn a moment ago counts as long
   * as the server may still talk about it: what it says must not reach another client.
   */
  sole(mayBeAbout: (request: RequestTraits) => boolean): OpenRequest | undefined {
    let sole: OpenRequest | undefined;
    for (const request of this.#requests.values()) {
      if (!mayBeAbout(request)) continue;
      if (sole !== undefined) return undefined;
      sole = request;
    }
    return sole !== undefined && this.#isRivalled(sole, mayBeAbout) ? undefined : sole;
  }

  #isRivalled({ sender }: OpenRequest, mayBeAbout: (request: RequestTraits) => boolean): boolean {
    const nowMs = this.#clock.now();
    const firstKept = this.#withdrawn.findIndex(({ untilMs }) => untilMs > nowMs);
    this.#withdrawn = firstKept === -1 ? [] : this.#withdrawn.slice(firstKept);
    const own = clientOf(sender);
    return this.#withdrawn.some(({ client, traits }) => (own === undefined || client !== own) && mayBeAbout(traits));
  }
}

/**
 * Takes what a shared modern server says and gives each message to the sender it belongs to: by id, by token, by
 * subscription, or because only one request can be meant. Where that cannot be told, it goes to nobody.
 */
export class FromModernServer {
  readonly #requests: OpenRequests;
  readonly #log: Logger;
  readonly #questions = new ModernQuestions();

  constructor(requests: OpenRequests, log: Logger) {
    this.#requests = requests;
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
    const request = this.#takeRequest(frame.id);
    if (request === undefined) return this.#log.debug({ id: frame.id }, 'server answered a request that is not open');
    const answer = withId(frame, request.idToken);
    deliver(
      request.sender,
      request.call,
      (request.subscription && rewriteSubscriptionId(answer, request.idToken)) ?? answer,
    );
  }

  /** Without an id it is about a request that could not be read; of what is open, only one may be that. */
  #takeRequest(id: JsonRpcId | undefined): OpenRequest | undefined {
    if (id !== undefined) return this.#requests.take(id);
    const sole = this.#requests.sole((request) => request.subscription?.isAcknowledged !== true);
    return this.#requests.take(sole?.call.upstreamId);
  }

  #notification(frame: Frame): void {
    const subscriptionId = findSubscriptionId(frame);
    if (subscriptionId !== undefined) return this.#subscribed(frame, this.#requests.get(subscriptionId.value));
    switch (frame.method) {
      case PROGRESS:
        return this.#progress(frame);
      case CANCELED:
        return this.#listenEnded(frame);
      case LOG_MESSAGE:
        return this.#toSole(frame, ({ wantsLogs }) => wantsLogs);
      default:
        return this.#toSole(frame, ({ subscription }) => subscription === undefined);
    }
  }

  #subscribed(frame: Frame, request: OpenRequest | undefined): void {
    if (request?.subscription === undefined) {
      return this.#log.debug({ method: frame.method }, 'notification dropped: it is of no open subscription');
    }
    if (frame.method === LISTEN_ACKNOWLEDGED) return acknowledged(frame, request, request.subscription);
    const rewritten = rewriteSubscriptionId(frame, request.idToken);
    if (rewritten !== undefined) deliver(request.sender, request.call, rewritten);
  }

  #progress(frame: Frame): void {
    const token = findProgressOf(frame);
    const request = this.#requests.get(asNumber(token?.value));
    const rewritten = request?.progressToken && rewriteProgress(frame, request.progressToken, token);
    if (request !== undefined && rewritten !== undefined) deliver(request.sender, request.call, rewritten);
  }

  /**
   * Another way for a server to end a subscription; its client gets the one that all clients know.
   * [spec 2026-07-28 basic/patterns/cancellation] must name a `subscriptions/listen`
   */
  #listenEnded(frame: Frame): void {
    const request = this.#requests.get(findCanceledId(frame)?.value);
    if (request?.subscription === undefined) return this.#log.debug('server canceled what is no subscription');
    const { call, idToken } = request;
    this.#requests.take(call.upstreamId);
    const result = resultFrame(idToken, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: call.id } });
    deliver(request.sender, request.call, rewriteSubscriptionId(result, idToken) ?? result);
  }

  #toSole(frame: Frame, mayBeAbout: (request: RequestTraits) => boolean): void {
    const request = this.#requests.sole(mayBeAbout);
    if (request !== undefined) return deliver(request.sender, request.call, frame);
    this.#log.debug(
      { method: frame.method },
      'notification dropped: it names no call, and not exactly one may be meant',
    );
  }

  fault(_link: UpstreamLink, { error, kind, id }: ServerFault): void {
    this.#log.error({ code: error.code }, error.message);
    if (kind === 'request' || kind === 'notification') return;
    const request = this.#takeRequest(id);
    if (request !== undefined) deliver(request.sender, request.call, errorFrame(request.idToken, rpcErrorOf(error)));
  }
}

/** The client is told once. A new process confirms it anew, and what changed in between was never reported. */
function acknowledged(frame: Frame, request: OpenRequest, subscription: Subscription): void {
  if (subscription.isAcknowledged) {
    for (const change of missedChanges(subscription.request, frame, request.idToken))
      deliver(request.sender, request.call, change);
    return;
  }
  subscription.isAcknowledged = true;
  const rewritten = rewriteSubscriptionId(frame, request.idToken);
  if (rewritten !== undefined) deliver(request.sender, request.call, rewritten);
}
