import type { Logger } from 'pino';
import { LinkedList } from '../../../collections/short-lived-values.ts';
import type { Deps } from '../../../deps.ts';
import { BridgeError, UNCLEAR } from '../../../errors.ts';
import { isAmbiguous } from '../../../mcp/classify/ambiguity.ts';
import { rewriteClientCanceled, rewriteRequest } from '../../../mcp/classify/correlators.ts';
import { META_LOG_LEVEL } from '../../../mcp/vocabulary/meta.ts';
import { CANCELED, LISTEN, PROGRESS } from '../../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken } from '../../../wire/frame.ts';
import { findUnmistakable } from '../../../wire/json/outline.ts';
import { errorFrame, notificationFrame } from '../../../wire/write-message.ts';
import type { Call } from '../../call.ts';
import { type CallHandler, type CallServer, ModernCall, wordsOf } from '../../modern-call.ts';
import type { ServerListener, UpstreamDialer, UpstreamLink } from '../../ports.ts';
import { callOf, deliver, refuse } from '../shared-client.ts';
import {
  type ServerEnd,
  type ServerLifecycle,
  type SharedEra,
  SharedServer,
  type SharedServerOptions,
} from '../shared-server.ts';
import { WithdrawnRequests } from '../withdrawn-requests.ts';
import { FromModernServer, ModernClient, type ModernSender, type OpenRequest, OpenRequests } from './open-requests.ts';

/** Open at one server for all clients together: each is one for as long as its client lives. */
const MAX_SUBSCRIPTIONS = 1024;

/**
 * A server of the modern era for requests that come alone, and for several clients with many requests each, such as
 * legacy clients whose sessions are translated.
 */
export class SharedModernServer
  extends SharedServer<ModernClient, ModernCall>
  implements UpstreamDialer, CallServer, CallHandler
{
  constructor(options: SharedServerOptions) {
    super(new ModernEra(options.deps), options);
  }

  dial(listener: ServerListener): UpstreamLink {
    const client = new ModernClient(listener);
    client.join(this);
    return client;
  }

  dialCalls(listener: ServerListener): UpstreamLink {
    return this.dial(listener);
  }

  callServer(): CallServer {
    this.checkReady();
    return this;
  }

  take(call: ModernCall, request: Frame): boolean {
    call.servedBy = this;
    return this.send(call, request, call);
  }

  /**
   * The server is not paused, because that would stop it for every client. The transport of a slow client bounds what
   * the client has not read.
   */
  pause(): void {}
  resume(): void {}
}

/**
 * A modern server holds no state for anybody, so nothing has to be reconciled but ids. A new process is asked again for
 * what an earlier one was to report.
 */
export class ModernEra implements SharedEra<ModernClient, ModernCall> {
  readonly firstState = 'unheard';
  readonly clients = new LinkedList<ModernClient>();
  readonly withdrawn: WithdrawnRequests;
  readonly fromClients: FromModernClients;
  readonly fromServer: FromModernServer;
  readonly #requests: OpenRequests;

  constructor({ clock, log }: Pick<Deps, 'log' | 'clock'>) {
    this.withdrawn = new WithdrawnRequests(clock);
    this.#requests = new OpenRequests(clock);
    this.fromClients = new FromModernClients(this.#requests, this.withdrawn, log);
    this.fromServer = new FromModernServer(this.#requests, log);
  }

  get openCalls(): readonly ModernCall[] {
    return this.#requests.all().flatMap(({ sender }) => (sender instanceof ModernCall ? sender : []));
  }

  /** A subscription that waits for the next process is over at once. */
  takeUnsent(sender: ModernSender, { method }: Frame, call: Call | undefined): boolean {
    return method === CANCELED && this.fromClients.cancel(sender, call) !== undefined;
  }

  started({ link }: ServerLifecycle): void {
    this.fromClients.listenAgain(link);
  }

  /** Subscriptions stay, but for one to a server that has never said a word. */
  ended({ reason, wasServing }: ServerEnd): void {
    this.#requests.forgetWithdrawn();
    for (const request of this.#requests.all()) {
      const { sender, call, subscription, idToken } = request;
      if (subscription !== undefined && (wasServing || subscription.isAcknowledged)) continue;
      const isOpen = this.#requests.take(call.upstreamId) !== undefined;
      if (isOpen) deliver(sender, call, errorFrame(idToken, rpcErrorOf(reason)));
    }
  }

  close(): void {}
}

/** Passes on what the senders say to the modern server they share, under ids of the link. */
class FromModernClients {
  readonly #requests: OpenRequests;
  readonly #log: Logger;
  readonly #withdrawn: WithdrawnRequests;
  #lastId = 0;

  constructor(requests: OpenRequests, withdrawn: WithdrawnRequests, log: Logger) {
    this.#requests = requests;
    this.#log = log;
    this.#withdrawn = withdrawn;
  }

  /** False: the server's pipe is full. */
  take(link: UpstreamLink, sender: ModernSender, frame: Frame, call: Call | undefined): boolean {
    switch (frame.kind) {
      case 'request':
        return this.#request(link, sender, frame, callOf(frame, call));
      case 'notification':
        return this.#notification(link, sender, frame, call);
      case 'result':
      case 'error':
        // [spec 2026-07-28 transports/stdio#sending-messages] must not be written: nobody has asked.
        this.#log.debug('client answered, but a modern server asks nothing');
        return true;
    }
  }

  #request(link: UpstreamLink, sender: ModernSender, frame: Frame, call: Call): boolean {
    const refusal = this.#withdrawn.refusalOf(frame.bytes.length);
    if (refusal !== undefined) return refuse(sender, frame, call, refusal);
    const logs = isAmbiguous(frame) ? 'unclear' : asksForLogs(frame);
    if (logs === 'unclear') return refuse(sender, frame, call, UNCLEAR);
    const isListen = frame.method === LISTEN;
    // [spec 2026-07-28 transports/streamable-http#receiving-messages] no log messages within a subscription
    const wantsLogs = logs && !isListen;
    if (isListen && this.#requests.subscriptions >= MAX_SUBSCRIPTIONS)
      return refuse(sender, frame, call, TOO_MANY_SUBSCRIPTIONS);
    const subscription = isListen ? { request: frame, isAcknowledged: false } : undefined;
    return this.#open(link, { sender, call, wantsLogs, subscription }, frame) ?? refuse(sender, frame, call, UNCLEAR);
  }

  /** Undefined: nothing was sent, the request can be read in several ways. */
  #open(
    link: UpstreamLink,
    { sender, call, wantsLogs, subscription }: Pick<OpenRequest, 'sender' | 'call' | 'wantsLogs' | 'subscription'>,
    frame: Frame,
  ): boolean | undefined {
    const upstreamId = this.#nextId();
    const rewritten = rewriteRequest(frame, upstreamId);
    if (rewritten === undefined) return undefined;
    call.upstreamId = upstreamId;
    this.#requests.add({
      sender,
      call,
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

  #notification(link: UpstreamLink, sender: ModernSender, frame: Frame, call: Call | undefined): boolean {
    switch (frame.method) {
      case CANCELED: {
        const request = this.cancel(sender, call);
        return request === undefined || this.#tellCanceled(link, request, frame);
      }
      // About a request of the server, of which there are none.
      case PROGRESS:
        return true;
      default:
        return isAmbiguous(frame) || link.send(frame);
    }
  }

  /** The request that this `notifications/cancelled` of a client is about; from here on it belongs to nobody. */
  cancel(sender: ModernSender, call: Call | undefined): OpenRequest | undefined {
    const request = this.#requests.get(call?.upstreamId);
    if (request === undefined || request.sender !== sender || request.call !== call) return undefined;
    this.#withdraw(request);
    return request;
  }

  #withdraw(request: OpenRequest): void {
    this.#requests.withdraw(request);
    this.#withdrawn.add(request.bytes);
  }

  /** If servers could read the notification in several ways, the bridge writes one of its own. */
  #tellCanceled(link: UpstreamLink, { call }: OpenRequest, frame: Frame): boolean {
    const { upstreamId } = call;
    const rewritten = isAmbiguous(frame) ? undefined : rewriteClientCanceled(frame, upstreamId);
    return link.send(rewritten ?? notificationFrame(CANCELED, { requestId: upstreamId }));
  }

  /** Asks a new process for what an earlier one was asked to report. */
  listenAgain(link: UpstreamLink): void {
    for (const request of this.#requests.all()) {
      const { subscription, call } = request;
      if (subscription === undefined) continue;
      this.#requests.take(call.upstreamId);
      this.#open(link, request, subscription.request);
    }
  }

  /** Withdraws what the sender has open; without a link there is nobody to tell. */
  withdraw(link: UpstreamLink | undefined, sender: ModernSender): void {
    const reason = sender instanceof ModernCall ? wordsOf(sender) : 'the client left';
    for (const request of this.#requests.of(sender)) {
      this.#withdraw(request);
      link?.send(notificationFrame(CANCELED, { requestId: request.call.upstreamId, reason }));
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
