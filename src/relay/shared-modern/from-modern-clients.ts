import type { Logger } from 'pino';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { findSharedCancelledId } from '../../mcp/classify/correlators.ts';
import { findUnmistakable, hasLookAlike } from '../../mcp/classify/look-alikes.ts';
import { rewriteClientCancelled, rewriteRequest } from '../../mcp/translate/rewrite.ts';
import { META_LOG_LEVEL } from '../../mcp/vocabulary/meta.ts';
import { CANCELLED, LISTEN, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { idToken } from '../../wire/splice.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { UpstreamLink } from '../ports.ts';
import { refuse } from '../shared/held-messages.ts';
import { WithdrawnRequests } from '../shared/shared-state.ts';
import { UNCLEAR } from '../shared/unclear-questions.ts';
import type { ModernCall, ModernCalls } from './modern-calls.ts';
import type { ModernClientLink } from './modern-client-link.ts';

/** Open at one server for all clients together: each is one for as long as its client lives. */
const MAX_SUBSCRIPTIONS = 1024;

/** A message of a client, and whose it is. */
export interface ClientMessage {
  readonly client: ModernClientLink;
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** Takes what one of several clients says to the modern server they share, under ids of the link. */
export class FromModernClients {
  readonly #calls: ModernCalls;
  readonly #log: Logger;
  readonly #withdrawn: WithdrawnRequests;
  #lastId = 0;

  constructor(calls: ModernCalls, { log, clock }: Pick<Deps, 'log' | 'clock'>) {
    this.#calls = calls;
    this.#log = log;
    this.#withdrawn = new WithdrawnRequests(clock);
  }

  /** False: the server's pipe is full. */
  take(link: UpstreamLink, message: ClientMessage): boolean {
    switch (message.frame.kind) {
      case 'request':
        return this.#request(link, message);
      case 'notification':
        return this.#notification(link, message);
      case 'result':
      case 'error':
        // [spec 2026-07-28 transports/stdio#sending-messages] must not be written: nobody has asked.
        this.#log.debug('client answered, but a modern server asks nothing');
        return true;
    }
  }

  #request(link: UpstreamLink, message: ClientMessage): boolean {
    const { frame } = message;
    const refusal = this.#withdrawn.refusalOf(frame.bytes.length);
    if (refusal !== undefined) return refused(message, refusal);
    const logs = hasLookAlike(frame) ? 'unclear' : asksForLogs(frame);
    if (logs === 'unclear') return refused(message, UNCLEAR);
    const isListen = frame.method === LISTEN;
    // [spec 2026-07-28 transports/streamable-http#receiving-messages] no log messages within a subscription
    const wantsLogs = logs && !isListen;
    if (isListen && this.#calls.subscriptions >= MAX_SUBSCRIPTIONS) return refused(message, TOO_MANY_SUBSCRIPTIONS);
    const subscription = isListen ? { request: frame, isAcknowledged: false } : undefined;
    return this.#open(link, message, { wantsLogs, subscription }) ?? refused(message, UNCLEAR);
  }

  /** Undefined: nothing was sent, the request can be read in several ways. */
  #open(
    link: UpstreamLink,
    { client, frame, exchange }: ClientMessage,
    wishes: Pick<ModernCall, 'wantsLogs' | 'subscription'>,
  ): boolean | undefined {
    const upstreamId = this.#nextId();
    const rewritten = rewriteRequest(frame, upstreamId);
    if (rewritten === undefined) return undefined;
    if (exchange !== undefined) exchange.upstreamId = upstreamId;
    const id = frame.id as JsonRpcId; // of a request
    const { progressToken } = rewritten;
    const { length } = rewritten.frame.bytes;
    const call = { client, exchange, upstreamId, id, idToken: idToken(frame), progressToken, bytes: length, ...wishes };
    this.#calls.add(call);
    return this.#withdrawn.sent(link.send(rewritten.frame));
  }

  /** Integers, which every server echoes unchanged; never used twice, whatever process they went to. */
  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  #notification(link: UpstreamLink, message: ClientMessage): boolean {
    const { frame } = message;
    switch (frame.method) {
      case CANCELLED: {
        const call = this.withdraw(message);
        return call === undefined || this.#tellWithdrawn(link, call, frame);
      }
      // About a request of the server, of which there are none.
      case PROGRESS:
        return true;
      default:
        return hasLookAlike(frame) || link.send(frame);
    }
  }

  /** The call that this `notifications/cancelled` is about; from here on it belongs to nobody. */
  withdraw({ client, frame, exchange }: ClientMessage): ModernCall | undefined {
    const call = exchange === undefined ? this.#named(client, frame) : this.#calls.get(exchange.upstreamId);
    if (call === undefined || call.client !== client || call.exchange !== exchange) return undefined;
    this.#withdraw(call);
    return call;
  }

  #withdraw(call: ModernCall): void {
    this.#calls.withdraw(call);
    this.#withdrawn.add(call.bytes);
  }

  #named(client: ModernClientLink, frame: Frame): ModernCall | undefined {
    const id = findSharedCancelledId(frame)?.value;
    return this.#calls.of(client).find((call) => call.exchange === undefined && call.id === id);
  }

  /** Where it is not certain what the server would read, the bridge says it in its own words. */
  #tellWithdrawn(link: UpstreamLink, { upstreamId }: ModernCall, frame: Frame): boolean {
    const rewritten = hasLookAlike(frame) ? undefined : rewriteClientCancelled(frame, upstreamId);
    return link.send(rewritten ?? notificationFrame(CANCELLED, { requestId: upstreamId }));
  }

  /** The server has capacity again, or is another one. */
  drained(): void {
    this.#withdrawn.clear();
  }

  /** Asks a new process for what an earlier one was asked to report. */
  listenAgain(link: UpstreamLink): void {
    for (const call of this.#calls.all()) {
      const { subscription, client, exchange, wantsLogs } = call;
      if (subscription === undefined) continue;
      this.#calls.take(call.upstreamId);
      this.#open(link, { client, frame: subscription.request, exchange }, { wantsLogs, subscription });
    }
  }

  /** Withdraws what the client had open; without a link there is nobody to tell. */
  leave(link: UpstreamLink | undefined, client: ModernClientLink): void {
    for (const call of this.#calls.of(client)) {
      this.#withdraw(call);
      link?.send(notificationFrame(CANCELLED, { requestId: call.upstreamId, reason: 'the client left' }));
    }
  }
}

/** Answers for the server, which need not be asked; its pipe has capacity. */
function refused(message: ClientMessage, reason: BridgeError): true {
  refuse(message, reason);
  return true;
}

const TOO_MANY_SUBSCRIPTIONS = new BridgeError(
  'ERR_SESSION_BUSY',
  `${MAX_SUBSCRIPTIONS} subscriptions are open at this server, the most allowed; close some.`,
);

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

const LETTER_N = 0x6e;

/**
 * Will the server send log messages for this request? Exact, for a call that is overlooked here would make its messages
 * look like those of another client's. [spec 2026-07-28 server/utilities/logging#per-request-log-level]
 */
export function asksForLogs(frame: Frame): boolean | 'unclear' {
  const meta = findUnmistakable(frame, frame.payloadStart, '_meta');
  if (meta === undefined || meta === 'unclear') return meta ?? false;
  const level = findUnmistakable(frame, meta.start, META_LOG_LEVEL);
  if (level === undefined || level === 'unclear') return level ?? false;
  // Only null starts with an n, and means the same as nothing.
  return frame.bytes[level.start] !== LETTER_N;
}
