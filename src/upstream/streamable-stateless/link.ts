import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { ModernQuestions } from '../../mcp/classify/modern-questions.ts';
import { CANCELLED, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener, UpstreamLink } from '../../relay/ports.ts';
import { type Frame, hasPlainId, idToken, type JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { Backlog, Outgoing } from '../remote/link-messages.ts';
import { CallQuestion } from '../remote/login-question.ts';
import { PostedCall, type PostHost, type Posting } from '../remote/posted-call.ts';
import { CallerHeaders, isOutOfReach } from '../remote/remote-environment.ts';
import type { Call, StatelessCallHost, StatelessEnvironment } from './call-host.ts';
import { ListenCall } from './listen-call.ts';
import { NotificationCall } from './notification-call.ts';
import { createPosting, type PostedMessage, postRequest } from './posting.ts';
import { RequestCall } from './request-call.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Limit of requests of one client that are posted at a time. Others wait for one of them to be answered. */
const MAX_POSTED = 128;

/** State shared by all links to one server. */
export interface StatelessServer {
  /** Returns an id for a request, which is never used twice. */
  nextId(): number;
  /** Returns a random number from 0 to 1. */
  random(): number;
  /** Notes that the server answered, or the reason why it could not be reached. */
  reachable(error: BridgeError | undefined): void;
  /**
   * Counts a new subscription. Returns false if the server has as many as are allowed. Each counted one has to be
   * removed.
   */
  addSubscription(): boolean;
  removeSubscription(): void;
  /**
   * Called when the server rejects a client's request in a way that no modern server does, before the rejection is
   * passed on.
   */
  doubted(exchange: Exchange | undefined): void;
  /** Called when the link is closed. */
  left(link: UpstreamLink): void;
}

export interface StatelessLinkOptions {
  readonly environment: StatelessEnvironment;
  readonly listener: ServerListener;
  readonly tools: ToolHeaders;
  readonly server: StatelessServer;
}

/**
 * A client's link to a modern server over HTTP. Each request is a separate POST, and only this object connects them.
 * [spec 2026-07-28 transports/streamable-http] After `close` the listener is not called any more.
 */
export class StatelessLink implements UpstreamLink, StatelessCallHost {
  readonly environment: StatelessEnvironment;
  readonly tools: ToolHeaders;
  readonly question = new CallQuestion();
  readonly #server: StatelessServer;
  readonly #log: Logger;
  readonly #listener: ServerListener;
  readonly #posting: Posting;
  readonly #caller: CallerHeaders;
  readonly #questions = new ModernQuestions();
  /** Calls that the server has, or is about to get. */
  readonly #calls = new Set<Call>();
  /** Requests that wait for a posted one to end. */
  #waiting: Call[] = [];
  #posted = 0;
  readonly #backlog = new Backlog();
  #isPaused = false;
  #isClosed = false;

  constructor({ environment, listener, tools, server }: StatelessLinkOptions) {
    this.environment = environment;
    this.#posting = createPosting(environment);
    this.#caller = new CallerHeaders(environment.forwarded);
    this.tools = tools;
    this.#server = server;
    this.#log = environment.log;
    this.#listener = listener;
  }

  // ---- from the relay

  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    if (this.#isClosed) return true;
    if (frame.method === CANCELLED) {
      this.#cancel(frame, exchange);
      return !this.#backlog.isFull;
    }
    if (frame.isResponse) {
      // [spec 2026-07-28 transports/streamable-http#sending-messages] A response must not be sent, since a modern
      // server sends no requests.
      this.#log.debug('client answered, but a modern server asks nothing');
      return !this.#backlog.isFull;
    }
    const repeated = this.question.findRepeated(frame);
    if (repeated?.kind === 'declined') {
      const refusal = errorFrame(idToken(frame), rpcErrorOf(repeated.prompt.error));
      this.#listener.fromServer(refusal, exchange);
      return !this.#backlog.isFull;
    }
    this.#caller.note(frame, exchange);
    const call = this.#createCall(repeated?.frame ?? frame, exchange);
    this.#backlog.add(call);
    this.#begin(call);
    return !this.#backlog.isFull;
  }

  #createCall(frame: Frame, exchange: Exchange | undefined): Call {
    if (frame.kind !== 'request') return new NotificationCall(this, frame, exchange, this.#caller.of(frame, exchange));
    return frame.method === LISTEN ? new ListenCall(this, frame, exchange) : new RequestCall(this, frame, exchange);
  }

  #begin(call: Call): void {
    if (call instanceof ListenCall && !this.#server.addSubscription()) {
      this.left(call);
      return this.#deliver(call, errorFrame(idToken(call.frame), rpcErrorOf(TOO_MANY_SUBSCRIPTIONS)));
    }
    if (!(call instanceof ListenCall)) {
      if (this.#posted >= MAX_POSTED) {
        this.#waiting.push(call);
        return;
      }
      this.#posted += 1;
    }
    this.#calls.add(call);
    call.start();
  }

  /**
   * Cancels a call by closing its connection; no message is sent.
   * [spec 2026-07-28 transports/streamable-http#cancellation]
   */
  #cancel(frame: Frame, exchange: Exchange | undefined): void {
    const id = exchange === undefined ? findCancelledId(frame)?.value : undefined;
    const isMeant = (call: Call): boolean =>
      call.exchange === exchange && call.frame.kind === 'request' && (exchange !== undefined || call.frame.id === id);
    const call = [...this.#calls, ...this.#waiting].find(isMeant);
    if (call === undefined) return;
    call.abort();
    this.#over(call);
  }

  pause(): void {
    this.#isPaused = true;
    for (const call of this.#calls) call.pause();
  }

  resume(): void {
    this.#isPaused = false;
    for (const call of this.#calls) call.resume();
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  close(reason: BridgeError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#log.debug({ code: reason.code, open: this.#calls.size }, 'link closed, withdrawing what is open');
    this.#waiting = [];
    for (const call of [...this.#calls]) {
      call.abort();
      this.#over(call);
    }
    this.#server.left(this);
  }

  // ---- from the calls

  nextId(): number {
    return this.#server.nextId();
  }

  random(): number {
    return this.#server.random();
  }

  /** Call this when the call's bytes have been sent or will not be. A second call has no effect. */
  left(call: Call): void {
    if (this.#backlog.remove(call) && !this.#isClosed) this.#listener.serverDrained();
  }

  responded(): void {
    this.#server.reachable(undefined);
  }

  post(owner: PostHost, message: PostedMessage): PostedCall {
    const request = postRequest(this.environment, message);
    return new PostedCall(this.#posting, owner, new Outgoing(message.frame), request);
  }

  matched(answer: Frame, request: Frame): void {
    if (answer.id === request.id && hasPlainId(answer)) return;
    this.environment.idWarnings.changed(answer.id as JsonRpcId, request.id as JsonRpcId);
  }

  /**
   * Drops a request, which a modern server must not send, or the answer to another request.
   * [spec 2026-07-28 transports/streamable-http#receiving-messages]
   */
  drop(frame: Frame): void {
    if (frame.kind === 'request') this.#questions.ignore(frame, this.#log);
    else this.environment.idWarnings.unknown(frame.id as JsonRpcId);
  }

  doubted({ exchange }: Call): void {
    this.#server.doubted(exchange);
  }

  notify(call: Call, notification: Frame): void {
    if (!this.#isClosed && isAwaited(call)) this.#listener.fromServer(notification, call.exchange);
  }

  answered(call: Call, answer: Frame): void {
    this.#over(call);
    this.#deliver(call, answer);
  }

  #deliver(call: Call, answer: Frame): void {
    if (!this.#isClosed && isAwaited(call)) this.#listener.fromServer(answer, call.exchange);
  }

  failed(call: Call, error: BridgeError): void {
    if (isOutOfReach(error)) this.#server.reachable(error);
    this.#over(call);
    const { kind, id } = call.frame;
    if (this.#isClosed || kind !== 'request' || !isAwaited(call)) return;
    this.#listener.serverFault({ error, kind: 'error', id });
  }

  ended(call: Call): void {
    this.#over(call);
  }

  /** Removes a call that has ended, and begins the next waiting one. */
  #over(call: Call): void {
    this.left(call);
    const waiting = this.#waiting.indexOf(call);
    if (waiting !== -1) this.#waiting.splice(waiting, 1);
    if (!this.#calls.delete(call)) return;
    if (call instanceof ListenCall) return this.#server.removeSubscription();
    this.#posted -= 1;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
  }
}

/** Returns false if the call has been canceled, so that the client gets nothing more about it. */
function isAwaited({ exchange }: Call): boolean {
  return exchange === undefined || exchange.state.kind === 'open';
}

const TOO_MANY_SUBSCRIPTIONS = new BridgeError(
  'ERR_SESSION_BUSY',
  'The server has as many subscriptions through this bridge as are allowed; close some.',
);
