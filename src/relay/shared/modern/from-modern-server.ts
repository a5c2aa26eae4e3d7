import type { Logger } from 'pino';
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
import { type Frame, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';
import type { ServerFault, UpstreamLink } from '../../ports.ts';
import type { CallTraits, ModernCall, ModernCalls, Subscription } from './modern-calls.ts';

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
    const call = this.#calls.get(token?.value);
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
