import type { Logger } from 'pino';
import { LinkedList } from '../../../collections/short-lived-values.ts';
import type { Deps } from '../../../deps.ts';
import { BridgeError, UNCLEAR } from '../../../errors.ts';
import { isAmbiguous } from '../../../mcp/classify/ambiguity.ts';
import { findSharedCancelledId, rewriteClientCancelled, rewriteRequest } from '../../../mcp/classify/correlators.ts';
import { META_LOG_LEVEL } from '../../../mcp/vocabulary/meta.ts';
import { CANCELLED, LISTEN, PROGRESS } from '../../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken, type JsonRpcId } from '../../../wire/frame.ts';
import { findUnmistakable } from '../../../wire/json/outline.ts';
import { errorFrame, notificationFrame } from '../../../wire/write-message.ts';
import type { Exchange } from '../../exchange.ts';
import type { SessionDialer, UpstreamLink } from '../../ports.ts';
import { type ClientMessage, refuse, WithdrawnRequests } from '../client-link.ts';
import {
  clientLinks,
  type ServerEnd,
  type ServerLifecycle,
  type SharedEra,
  SharedServer,
  type SharedServerOptions,
} from '../shared-server.ts';
import { FromModernServer, type ModernCall, ModernCalls, type ModernClient } from './modern-calls.ts';

/** Open at one server for all clients together: each is one for as long as its client lives. */
const MAX_SUBSCRIPTIONS = 1024;

type Message = ClientMessage<number>;

/** A server of the modern era that several clients share. */
export function createSharedModernServer(options: SharedServerOptions): SharedServer<number> & SessionDialer {
  const server = new SharedServer(new ModernEra(options.deps), options);
  // Clients are numbered, since one comes with each call and a symbol takes V8 30 times as long to make.
  let lastClient = 0;
  const newClient = (): number => {
    lastClient += 1;
    return lastClient;
  };
  return Object.assign(server, clientLinks(server, newClient));
}

/**
 * A modern server holds no state for anybody, so nothing has to be reconciled but ids. A new process is asked again for
 * what an earlier one was to report.
 */
export class ModernEra implements SharedEra<number> {
  readonly firstState = 'unheard';
  readonly clients = new LinkedList<ModernClient>();
  readonly withdrawn: WithdrawnRequests;
  readonly fromClients: FromModernClients;
  readonly fromServer: FromModernServer;
  readonly #calls: ModernCalls;

  constructor({ clock, log }: Pick<Deps, 'log' | 'clock'>) {
    this.withdrawn = new WithdrawnRequests(clock);
    this.#calls = new ModernCalls(clock);
    this.fromClients = new FromModernClients(this.#calls, this.withdrawn, log);
    this.fromServer = new FromModernServer(this.#calls, log);
  }

  /** A subscription that waits for the next process is over at once. */
  takeUnsent(message: Message): boolean {
    return message.frame.method === CANCELLED && this.fromClients.withdraw(message) !== undefined;
  }

  started({ link }: ServerLifecycle): void {
    this.fromClients.listenAgain(link);
  }

  /** Subscriptions stay, but for one to a server that has never said a word. */
  ended({ reason, wasServing }: ServerEnd): void {
    this.#calls.forgetWithdrawn();
    for (const { upstreamId, subscription, client, idToken, exchange } of this.#calls.all()) {
      if (subscription !== undefined && (wasServing || subscription.isAcknowledged)) continue;
      const isOpen = this.#calls.take(upstreamId) !== undefined;
      if (isOpen) client.listener.fromServer(errorFrame(idToken, rpcErrorOf(reason)), exchange);
    }
  }

  close(): void {}
}

/** Takes what one of several clients says to the modern server they share, under ids of the link. */
class FromModernClients {
  readonly #calls: ModernCalls;
  readonly #log: Logger;
  readonly #withdrawn: WithdrawnRequests;
  #lastId = 0;

  constructor(calls: ModernCalls, withdrawn: WithdrawnRequests, log: Logger) {
    this.#calls = calls;
    this.#log = log;
    this.#withdrawn = withdrawn;
  }

  /** False: the server's pipe is full. */
  take(link: UpstreamLink, client: ModernClient, frame: Frame, exchange: Exchange | undefined): boolean {
    switch (frame.kind) {
      case 'request':
        return this.#request(link, { client, frame, exchange });
      case 'notification':
        return this.#notification(link, { client, frame, exchange });
      case 'result':
      case 'error':
        // [spec 2026-07-28 transports/stdio#sending-messages] must not be written: nobody has asked.
        this.#log.debug('client answered, but a modern server asks nothing');
        return true;
    }
  }

  #request(link: UpstreamLink, message: Message): boolean {
    const { frame } = message;
    const refusal = this.#withdrawn.refusalOf(frame.bytes.length);
    if (refusal !== undefined) return refuse(message, refusal);
    const logs = isAmbiguous(frame) ? 'unclear' : asksForLogs(frame);
    if (logs === 'unclear') return refuse(message, UNCLEAR);
    const isListen = frame.method === LISTEN;
    // [spec 2026-07-28 transports/streamable-http#receiving-messages] no log messages within a subscription
    const wantsLogs = logs && !isListen;
    if (isListen && this.#calls.subscriptions >= MAX_SUBSCRIPTIONS) return refuse(message, TOO_MANY_SUBSCRIPTIONS);
    const subscription = isListen ? { request: frame, isAcknowledged: false } : undefined;
    return this.#open(link, message, { wantsLogs, subscription }) ?? refuse(message, UNCLEAR);
  }

  /** Undefined: nothing was sent, the request can be read in several ways. */
  #open(
    link: UpstreamLink,
    { client, frame, exchange }: Message,
    { wantsLogs, subscription }: Pick<ModernCall, 'wantsLogs' | 'subscription'>,
  ): boolean | undefined {
    const upstreamId = this.#nextId();
    const rewritten = rewriteRequest(frame, upstreamId);
    if (rewritten === undefined) return undefined;
    if (exchange !== undefined) exchange.upstreamId = upstreamId;
    const id = frame.id as JsonRpcId; // of a request
    this.#calls.add({
      client,
      exchange,
      upstreamId,
      id,
      idToken: idToken(frame),
      progressToken: rewritten.progressToken,
      bytes: rewritten.frame.bytes.length,
      wantsLogs,
      subscription,
    });
    return this.#withdrawn.sent(link.send(rewritten.frame));
  }

  /** Integers, which every server echoes unchanged; never used twice, whatever process they went to. */
  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  #notification(link: UpstreamLink, message: Message): boolean {
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
        return isAmbiguous(frame) || link.send(frame);
    }
  }

  /** The call that this `notifications/cancelled` is about; from here on it belongs to nobody. */
  withdraw({ client, frame, exchange }: Message): ModernCall | undefined {
    const call = exchange === undefined ? this.#named(client, frame) : this.#calls.get(exchange.upstreamId);
    if (call === undefined || call.client !== client || call.exchange !== exchange) return undefined;
    this.#withdraw(call);
    return call;
  }

  #withdraw(call: ModernCall): void {
    this.#calls.withdraw(call);
    this.#withdrawn.add(call.bytes);
  }

  #named(client: ModernClient, frame: Frame): ModernCall | undefined {
    const id = findSharedCancelledId(frame)?.value;
    return this.#calls.of(client).find((call) => call.exchange === undefined && call.id === id);
  }

  /** If servers could read the notification in several ways, the bridge writes one of its own. */
  #tellWithdrawn(link: UpstreamLink, { upstreamId }: ModernCall, frame: Frame): boolean {
    const rewritten = isAmbiguous(frame) ? undefined : rewriteClientCancelled(frame, upstreamId);
    return link.send(rewritten ?? notificationFrame(CANCELLED, { requestId: upstreamId }));
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
  leave(link: UpstreamLink | undefined, client: ModernClient): void {
    for (const call of this.#calls.of(client)) {
      this.#withdraw(call);
      link?.send(notificationFrame(CANCELLED, { requestId: call.upstreamId, reason: 'the client left' }));
    }
  }
}

const TOO_MANY_SUBSCRIPTIONS = new BridgeError(
  'ERR_SESSION_BUSY',
  `${MAX_SUBSCRIPTIONS} subscriptions are open at this server, the most allowed; close some.`,
);

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
