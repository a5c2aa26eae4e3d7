import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import { findCanceledId } from '../../mcp/classify/correlators.ts';
import { ModernQuestions } from '../../mcp/classify/modern-questions.ts';
import { CANCELED, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../relay/call.ts';
import { type Frame, idToken, type JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { Connection } from '../connection.ts';
import { Backlog } from '../remote/link-messages.ts';
import { CallQuestion } from '../remote/login-question.ts';
import type { RemoteLinkOptions } from '../remote/remote-connector.ts';
import type { PostedMessage, StatelessCallHost } from './call-host.ts';
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
  /** Messages that the server has, or is about to get. */
  readonly #open = new Set<PostedMessage>();
  /** Requests that wait for a posted one to end. */
  #waiting: PostedMessage[] = [];
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

  protected override write(frame: Frame, call: Call | undefined): boolean {
    if (this.#isClosed) return true;
    if (frame.method === CANCELED) {
      this.#cancel(frame, call);
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
      this.fromServer(refusal, call);
      return !this.#backlog.isFull;
    }
    this.#options.environment.caller.note(frame, call);
    const posted = this.#createMessage(repeated?.frame ?? frame, call);
    this.#backlog.add(posted);
    this.#begin(posted);
    return !this.#backlog.isFull;
  }

  #createMessage(frame: Frame, call: Call | undefined): PostedMessage {
    if (frame.kind !== 'request')
      return new NotificationCall(this, frame, call, this.#options.environment.caller.of(frame, call));
    return frame.method === LISTEN ? new ListenCall(this, frame, call) : new RequestCall(this, frame, call);
  }

  #begin(posted: PostedMessage): void {
    if (!(posted instanceof ListenCall)) {
      if (this.#posted >= MAX_POSTED) {
        this.#waiting.push(posted);
        return;
      }
      this.#posted += 1;
    }
    this.#open.add(posted);
    if (this.#isPaused) posted.pause();
    posted.start();
  }

  /**
   * Cancels a request by closing its connection; no message is sent.
   * [spec 2026-07-28 transports/streamable-http#cancellation]
   */
  #cancel(frame: Frame, call: Call | undefined): void {
    const id = call === undefined ? findCanceledId(frame)?.value : undefined;
    const isMeant = (posted: PostedMessage): boolean =>
      posted.call === call && posted.frame.kind === 'request' && (call !== undefined || posted.frame.id === id);
    const posted = [...this.#open, ...this.#waiting].find(isMeant);
    if (posted === undefined) return;
    posted.abort();
    this.#over(posted);
  }

  protected override pauseSource(): void {
    this.#isPaused = true;
    for (const posted of this.#open) posted.pause();
  }

  protected override resumeSource(): void {
    this.#isPaused = false;
    for (const posted of this.#open) posted.resume();
  }

  protected override end(reason: BridgeError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#log.debug({ code: reason.code, open: this.#open.size }, 'link closed, withdrawing what is open');
    this.#waiting = [];
    for (const posted of [...this.#open]) {
      posted.abort();
      this.#over(posted);
    }
    this.#options.left();
  }

  // ---- from the posted messages

  /** Called when the message's bytes have been sent or will not be. May be called twice. */
  left(posted: PostedMessage): void {
    if (this.#backlog.remove(posted) && !this.#isClosed) this.serverDrained();
  }

  forwardedWith(call: Call | undefined): Lane['headers'] {
    return call === undefined ? this.#options.forwarded : call.lane.headers;
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

  notify(posted: PostedMessage, notification: Frame): void {
    if (!this.#isClosed && isAwaited(posted)) this.fromServer(notification, posted.call);
  }

  answered(posted: PostedMessage, answer: Frame): void {
    this.#over(posted);
    this.#deliver(posted, answer);
  }

  #deliver(posted: PostedMessage, answer: Frame): void {
    if (!this.#isClosed && isAwaited(posted)) this.fromServer(answer, posted.call);
  }

  failed(posted: PostedMessage, error: BridgeError): void {
    this.server.failed(error);
    this.#over(posted);
    const { kind, id } = posted.frame;
    if (this.#isClosed || kind !== 'request' || !isAwaited(posted)) return;
    this.serverFault({ error, kind: 'error', id });
  }

  ended(posted: PostedMessage): void {
    this.#over(posted);
  }

  /** Removes a message that has ended, and begins the next waiting one. */
  #over(posted: PostedMessage): void {
    this.left(posted);
    const waiting = this.#waiting.indexOf(posted);
    if (waiting !== -1) this.#waiting.splice(waiting, 1);
    if (!this.#open.delete(posted)) return;
    if (posted instanceof ListenCall) return;
    this.#posted -= 1;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
  }
}

/** Returns false if the call of the message has been canceled, so that the client gets nothing more about it. */
function isAwaited({ call }: PostedMessage): boolean {
  return call === undefined || call.state.kind === 'open';
}
