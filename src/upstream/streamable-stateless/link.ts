import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import { findCancelledId } from '../../mcp/classify/correlators.ts';
import { ModernQuestions } from '../../mcp/classify/modern-questions.ts';
import { CANCELLED, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import { type Frame, idToken, type JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { Connection } from '../connection.ts';
import { Backlog } from '../remote/link-messages.ts';
import { CallQuestion } from '../remote/login-question.ts';
import type { RemoteLinkOptions } from '../remote/remote-connector.ts';
import type { Call, StatelessCallHost } from './call-host.ts';
import { ListenCall } from './listen-call.ts';
import { NotificationCall } from './notification-call.ts';
import { RequestCall } from './request-call.ts';
import type { StatelessServer } from './server-state.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Limit of requests of one client that are posted at a time. Others wait for one of them to be answered. */
const MAX_POSTED = 128;

export interface StatelessLinkOptions extends RemoteLinkOptions {
  /** Headers of the client that opened the link, forwarded with messages that have none of their own. */
  readonly forwarded: Lane['headers'];
  readonly tools: ToolHeaders;
  readonly server: StatelessServer;
}

/**
 * The link to a modern server over HTTP of a client with many requests. Each request is a separate POST, and only this
 * object connects them. [spec 2026-07-28 transports/streamable-http]
 */
export class StatelessLink extends Connection implements StatelessCallHost {
  readonly server: StatelessServer;
  readonly tools: ToolHeaders;
  readonly cookies: SessionCookies;
  readonly question = new CallQuestion();
  readonly #options: StatelessLinkOptions;
  readonly #log: Logger;
  #questions: ModernQuestions | undefined;
  /** Calls that the server has, or is about to get. */
  readonly #calls = new Set<Call>();
  /** Requests that wait for a posted one to end. */
  #waiting: Call[] = [];
  #posted = 0;
  readonly #backlog = new Backlog();
  #isPaused = false;
  #isClosed = false;

  constructor(options: StatelessLinkOptions) {
    super();
    const { environment, tools, server } = options;
    this.#options = options;
    this.server = server;
    this.tools = tools;
    this.cookies = environment.cookies;
    this.#log = environment.log;
  }

  // ---- from the relay

  get process(): undefined {
    return undefined;
  }

  protected override write(frame: Frame, exchange: Exchange | undefined): boolean {
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
      this.fromServer(refusal, exchange);
      return !this.#backlog.isFull;
    }
    this.#options.environment.caller.note(frame, exchange);
    const call = this.#createCall(repeated?.frame ?? frame, exchange);
    this.#backlog.add(call);
    this.#begin(call);
    return !this.#backlog.isFull;
  }

  #createCall(frame: Frame, exchange: Exchange | undefined): Call {
    if (frame.kind !== 'request')
      return new NotificationCall(this, frame, exchange, this.#options.environment.caller.of(frame, exchange));
    return frame.method === LISTEN ? new ListenCall(this, frame, exchange) : new RequestCall(this, frame, exchange);
  }

  #begin(call: Call): void {
    if (!(call instanceof ListenCall)) {
      if (this.#posted >= MAX_POSTED) {
        this.#waiting.push(call);
        return;
      }
      this.#posted += 1;
    }
    this.#calls.add(call);
    if (this.#isPaused) call.pause();
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

  protected override pauseSource(): void {
    this.#isPaused = true;
    for (const call of this.#calls) call.pause();
  }

  protected override resumeSource(): void {
    this.#isPaused = false;
    for (const call of this.#calls) call.resume();
  }

  protected override end(reason: BridgeError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#log.debug({ code: reason.code, open: this.#calls.size }, 'link closed, withdrawing what is open');
    this.#waiting = [];
    for (const call of [...this.#calls]) {
      call.abort();
      this.#over(call);
    }
    this.#options.left();
  }

  // ---- from the calls

  /** Call this when the call's bytes have been sent or will not be. A second call has no effect. */
  left(call: Call): void {
    if (this.#backlog.remove(call) && !this.#isClosed) this.serverDrained();
  }

  forwardedWith(exchange: Exchange | undefined): Lane['headers'] {
    return exchange === undefined ? this.#options.forwarded : exchange.lane.headers;
  }

  /**
   * Drops a request, which a modern server must not send, or the answer to another request.
   * [spec 2026-07-28 transports/streamable-http#receiving-messages]
   */
  drop(frame: Frame): void {
    if (frame.kind !== 'request') return this.server.environment.idWarnings.unknown(frame.id as JsonRpcId);
    this.#questions ??= new ModernQuestions();
    this.#questions.ignore(frame, this.#log);
  }

  notify(call: Call, notification: Frame): void {
    if (!this.#isClosed && isAwaited(call)) this.fromServer(notification, call.exchange);
  }

  answered(call: Call, answer: Frame): void {
    this.#over(call);
    this.#deliver(call, answer);
  }

  #deliver(call: Call, answer: Frame): void {
    if (!this.#isClosed && isAwaited(call)) this.fromServer(answer, call.exchange);
  }

  failed(call: Call, error: BridgeError): void {
    this.server.failed(error);
    this.#over(call);
    const { kind, id } = call.frame;
    if (this.#isClosed || kind !== 'request' || !isAwaited(call)) return;
    this.serverFault({ error, kind: 'error', id });
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
    if (call instanceof ListenCall) return;
    this.#posted -= 1;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
  }
}

/** Returns false if the call has been canceled, so that the client gets nothing more about it. */
function isAwaited({ exchange }: Call): boolean {
  return exchange === undefined || exchange.state.kind === 'open';
}
