import type { Logger } from 'pino';
import { assertNever, BridgeError } from '../../errors.ts';
import type { UserAnswer, UserPrompt } from '../../http/client/credentials.ts';
import type { ResponseHead } from '../../http/client/http-call.ts';
import { showUrl } from '../../http/shown-url.ts';
import { isRepeatable } from '../../mcp/classify/repeatable.ts';
import type { SessionVerdict } from '../../mcp/classify/session-refusal.ts';
import { SESSION_ID_HEADER } from '../../mcp/vocabulary/headers.ts';
import { CANCELED, INITIALIZE, INITIALIZED, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import type { Call } from '../../relay/call.ts';
import type { ServerFault } from '../../relay/ports.ts';
import type { SessionState } from '../../relay/sessions/session-state.ts';
import { answersId, type Frame } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import { LinkRequests } from '../answer-ids.ts';
import { Connection } from '../connection.ts';
import { CallErrors } from '../remote/answer-reader.ts';
import { Delivery, Outbox, Outgoing } from '../remote/link-messages.ts';
import { SessionQuestion } from '../remote/login-question.ts';
import { postRequest, resumeRequest } from '../remote/post-requests.ts';
import { type PostEnd, PostedCall, type PostHost, type Posting, useOfBody } from '../remote/posted-call.ts';
import { PostedCalls } from '../remote/posted-calls.ts';
import { type Refusal, sessionVerdictOf, sessionVerdictOfAnswer } from '../remote/refusal.ts';
import type { RemoteLinkOptions } from '../remote/remote-connector.ts';
import type { SessionKey } from '../remote/session-key.ts';
import { isOutOfReach } from '../resilience/reachability.ts';
import { GetStream } from './get-stream.ts';
import { type KeeperHost, SessionKeeper } from './session-keeper.ts';

export interface StreamableLinkOptions extends Omit<RemoteLinkOptions, 'left'> {
  /** A new session, or one that was opened by another bridge and is continued here. The link keeps it up to date. */
  readonly session: SessionState;
  /** Called when the link is closed. The session, if there was one, should then be ended at the server. */
  readonly left: (session: SessionKey) => void;
}

/**
 * Limits calls that have been answered or accepted but whose response is open. Their requests are not needed anymore,
 * so no large one is kept.
 */
export const LINGERING_LIMITS = { count: 16, bytes: 1024 * 1024, least: 0 };

/** Limit of posts of a message. A message rejected with its session is posted once more, in a new session. */
const MAX_ATTEMPTS = 2;

/** A session with a server over Streamable HTTP. */
export class StreamableLink extends Connection implements PostHost, KeeperHost {
  readonly #options: StreamableLinkOptions;
  readonly #delivery: Delivery;
  readonly #requests: LinkRequests;
  readonly #log: Logger;
  readonly #outbox: Outbox;
  readonly #keeper: SessionKeeper;
  readonly #posting: Posting;
  readonly #posts: PostedCalls;
  #stream: GetStream | undefined;
  /** Notifications about possible changes, which the client gets as soon as the event stream is open. */
  #missed: readonly Frame[] = [];
  #question: SessionQuestion | undefined;
  #isPaused = false;
  #isClosed = false;
  /**
   * True if the server has rejected a message in a new session just as in the one before. Such a rejection then is not
   * about the session.
   */
  #wasRenewedInVain = false;

  constructor(options: StreamableLinkOptions) {
    super();
    const { environment, session } = options;
    const { clock } = environment.http;
    this.#options = options;
    this.#log = environment.log;
    this.#requests = new LinkRequests({
      warnings: environment.idWarnings,
      log: environment.log,
      send: (frame, call) => void this.write(frame, call),
    });
    this.#delivery = new Delivery(this, this.#requests);
    this.#posting = {
      environment,
      useOf: useOfBody,
      answersOnStream: false,
      readsOn: true,
      lingerMs: 0,
      resume: (stream) => resumeRequest(environment, stream),
    };
    this.#posts = new PostedCalls({
      clock,
      lingering: LINGERING_LIMITS,
      left: ({ message: { frame, reply } }) => {
        if (reply === undefined && frame.kind === 'request') session.positions.over(frame);
      },
    });
    this.#keeper = new SessionKeeper(this, session, clock, environment.log);
    this.#outbox = new Outbox({
      clock,
      log: environment.log,
      post: (message) => this.#postInTurn(message),
      drained: () => this.serverDrained(),
    });
    if (!session.isInitialized) return;
    // The server's messages were not received between the end of the former bridge and now.
    this.#missed = session.missed();
    this.ready();
  }

  // ---- from the relay

  get process(): undefined {
    return undefined;
  }

  protected override write(frame: Frame, call: Call | undefined): boolean {
    if (this.#isClosed) return true;
    this.#options.environment.caller.note(frame, call);
    this.#requests.sent(frame);
    if (frame.method === CANCELED && call !== undefined) return this.#cancel(frame, call);
    if (frame.isResponse) {
      this.#delivery.answered(frame);
      if (this.#question?.takes(frame) === true) return true;
    }
    const resumesAfter = this.#options.session.takeResumption(frame);
    if (resumesAfter !== undefined) return this.#resumeCall(frame, call, resumesAfter);
    return this.#outbox.send(frame, call);
  }

  /**
   * Resumes a call that another bridge has posted. It bypasses the outbox, since it need not wait for other messages.
   */
  #resumeCall(frame: Frame, call: Call | undefined, lastEventId: string): boolean {
    const message = new Outgoing(frame, call);
    message.resumesAfter = lastEventId;
    this.post(message);
    return true;
  }

  /**
   * Handles a cancellation. If its request has not been sent, the request is dropped and the cancellation is not sent,
   * since it could overtake the request.
   */
  #cancel(frame: Frame, call: Call): boolean {
    if (this.#outbox.withdraw(call)) return true;
    const request = this.#posts.withdraw(call);
    if (request === undefined) return this.#outbox.send(frame, call);
    this.#outbox.answered(request);
    return true;
  }

  protected override pauseSource(): void {
    this.#isPaused = true;
    this.#posts.pause();
    this.#stream?.pause();
  }

  protected override resumeSource(): void {
    this.#isPaused = false;
    this.#posts.resume();
    this.#stream?.resume();
  }

  protected override end(reason: BridgeError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#log.debug({ code: reason.code }, 'link closed, ending the session');
    const { key } = this.#keeper;
    this.#keeper.close();
    this.#outbox.close();
    this.#stream?.close();
    this.#posts.close();
    this.#delivery.close();
    this.#options.left(key);
  }

  // ---- to the server

  #postInTurn(message: Outgoing): void {
    // Without a session the message cannot be posted. A session is opened first, and then the message is posted.
    if (this.#keeper.state === 'lost' && message.frame.method !== INITIALIZE) {
      this.#outbox.hold();
      this.#keeper.renew(this.#keeper.key);
      return this.#outbox.again(message);
    }
    this.post(message);
  }

  post(message: Outgoing): void {
    const { resumesAfter, reply } = message;
    message.attempts += 1;
    message.session = this.#keeper.key;
    const { environment } = this.#options;
    const start =
      resumesAfter === undefined
        ? postRequest(environment, message, message.session.postHeaders)
        : { after: resumesAfter };
    const post = new PostedCall(this.#posting, this, message, start);
    if (this.#isPaused && reply === undefined) post.pause();
    this.#posts.add(post);
  }

  // ---- from the calls

  left(post: PostedCall): void {
    this.#outbox.left(post.message);
  }

  askUser({ message: { frame, call, reply } }: PostedCall, prompt: UserPrompt): Promise<UserAnswer> | undefined {
    // [spec 2025-11-25 basic/lifecycle#initialization] A client must not be sent requests before the handshake is
    // complete.
    const { isInitialized, initialize } = this.#options.session;
    if (!isInitialized || reply !== undefined || frame.method === INITIALIZE) return undefined;
    this.#question ??= new SessionQuestion((message) => this.#delivery.message(message));
    return this.#question.ask(prompt, initialize, (question) => this.#delivery.message(question, call));
  }

  responded({ message }: PostedCall, { status, headers }: ResponseHead): void {
    this.#options.reachable(undefined);
    const { frame, reply } = message;
    if (frame.method === INITIALIZE) this.#keeper.named(headers[SESSION_ID_HEADER]);
    if (frame.kind !== 'request' && status >= 200 && status < 300) {
      // A notification or response is complete when its POST is accepted. Only the status counts, because the server may
      // leave the HTTP response open.
      this.#settled(message);
      return reply?.(frame, 'unrelated');
    }
    // Messages that wait for `notifications/initialized` also wait for the event stream, which is requested only after
    // that notification has arrived. `#settled` completes both in this order.
    if (frame.method !== INITIALIZED) this.#outbox.answered(message);
  }

  received({ message: { call } }: PostedCall, frame: Frame): void {
    if (frame.isResponse) this.#heard(frame);
    else this.#delivery.message(frame, call);
  }

  /**
   * Handles a message that did not come in the response to its own call, but on the session's event stream or in the
   * response to another call.
   */
  #heard(frame: Frame): void {
    const post = frame.isResponse && frame.id !== undefined ? this.#posts.findOpen(frame.id) : undefined;
    if (post === undefined) return this.#delivery.message(frame);
    this.#answered(post.message, frame, 'unrelated');
    post.answeredElsewhere();
  }

  /**
   * Handles the answer in the response to its call. Some servers use an ordinary JSON-RPC error to say that they do not
   * know the session.
   */
  answered(post: PostedCall, answer: Frame): void {
    const { message } = post;
    if (answer.kind === 'result') return this.#answered(message, answer, 'unrelated');
    const verdict = sessionVerdictOfAnswer(answer, message.frame);
    const tell = (): void => this.#answered(message, answer, verdict);
    if (this.#doubtsSession(message, verdict, tell)) this.#posts.abort(post);
    else tell();
  }

  #answered(message: Outgoing, frame: Frame, verdict: SessionVerdict): void {
    if (message.reply !== undefined) return message.reply(frame, verdict);
    if (frame.kind === 'result') this.#keeper.succeeded(message.frame, frame);
    this.#delivery.message(frame, message.call);
    if (message.frame.method === INITIALIZE) this.#outbox.opened();
  }

  hasStream(): boolean {
    return this.#stream?.isThere ?? false;
  }

  moved({ message: { frame, reply } }: PostedCall, lastEventId: string): void {
    if (reply === undefined) this.#options.session.positions.moved(frame, lastEventId);
  }

  faulted(fault: ServerFault): void {
    this.#delivery.fault(fault);
  }

  lingers(post: PostedCall): void {
    this.#posts.linger(post);
  }

  over(post: PostedCall, end: PostEnd): void {
    if (!this.#posts.delete(post)) return;
    const { message } = post;
    switch (end.kind) {
      case 'done':
        if (message.frame.kind === 'request') this.#settled(message);
        return;
      case 'refused':
        return this.#refused(message, end.refusal);
      case 'failed':
        this.#settled(message);
        return this.#failed(message, end.error, end.wasSent);
      case 'broken-off': {
        const { cause, wasResumable, status } = end;
        const errors = new CallErrors(this.#options.environment.url, message.frame.method);
        this.#settled(message);
        this.#failed(message, errors.lost(cause, wasResumable), true);
        if (status === 404 && message.session.id !== undefined) this.#keeper.renew(message.session);
        return;
      }
      default:
        assertNever(end);
    }
  }

  /** Call this when the server has accepted the message or never will. */
  #settled(message: Outgoing): void {
    const { frame, call, reply } = message;
    if (frame.method === INITIALIZED && reply === undefined) this.#keeper.initialized();
    this.#outbox.answered(message);
    if (frame.method !== CANCELED || call === undefined) return;
    // The canceled call ends only now that its cancellation has been delivered, because a broken connection is not a
    // cancellation. [spec 2025-11-25 transports#sending-messages-to-the-server]
    const canceled = this.#posts.find(call);
    if (canceled !== undefined) this.#posts.abort(canceled);
  }

  #refused(message: Outgoing, refusal: Refusal): void {
    const { frame } = refusal;
    const verdict = sessionVerdictOf(refusal, message.frame);
    const tell = (): void => {
      this.#settled(message);
      const isAnswer = frame !== undefined && message.frame.kind === 'request' && answersId(frame.id, message.frame.id);
      if (isAnswer) this.#answered(message, frame, verdict);
      else if (message.reply !== undefined) message.reply(refusal.error, verdict);
      else this.#failed(message, refusal.error, false);
    };
    if (!this.#doubtsSession(message, verdict, tell)) tell();
  }

  /** Reports a failed message to the client, and to the server too if it may be processing the request. */
  #failed(message: Outgoing, error: BridgeError, wasSent: boolean): void {
    const { frame, reply } = message;
    if (isOutOfReach(error)) this.#options.reachable(error);
    if (reply !== undefined) return reply(error, 'unrelated');
    if (frame.kind !== 'request') {
      // The session continues without the message. A server without sessions may not accept it at all.
      this.#log.warn({ code: error.code, method: frame.method }, `a message was not taken: ${error.message}`);
      return;
    }
    this.#delivery.failed(message, error);
    if (this.#isClosed) return;
    if (frame.method === INITIALIZE) this.#outbox.opened();
    else if (wasSent)
      this.#outbox.send(notificationFrame(CANCELED, { requestId: frame.id, reason: 'the answer was lost' }));
  }

  // ---- the session

  /**
   * Handles a rejection that may be about the session. A message that was certainly not carried out is posted again in
   * a new session. Returns false if the rejection is about the message.
   * @param tell reports the rejection to the client, once the server has shown that it knows the session
   */
  #doubtsSession(message: Outgoing, verdict: SessionVerdict, tell: () => void): boolean {
    const { session } = message;
    if (verdict === 'unrelated' || session.id === undefined || message.reply !== undefined) return false;
    if (message.attempts >= MAX_ATTEMPTS) {
      this.#wasRenewedInVain ||= verdict !== 'forgotten';
      return false;
    }
    if (verdict === 'forgotten') {
      this.#postAgain(message);
      return true;
    }
    if (this.#wasRenewedInVain) return false;
    void this.#keeper.isKnown(session).then((isKnown) => {
      if (this.#isClosed) return;
      if (isKnown) return tell();
      if (verdict === 'refused' || isRepeatable(message.frame)) return this.#postAgain(message);
      this.#keeper.renew(session);
      tell();
    });
    return true;
  }

  /** Posts a message again in a new session. It was rejected only because of its session, so it was not carried out. */
  #postAgain(message: Outgoing): void {
    this.#keeper.renew(message.session);
    this.#outbox.answered(message);
    const { frame, call } = message;
    const isWithdrawn = frame.kind === 'request' && call !== undefined && call.state.kind !== 'open';
    if (isWorthRepeating(frame) && !isWithdrawn) this.#outbox.again(message);
    else if (frame.method === INITIALIZED) this.#keeper.session.isInitialized = true;
    else this.#log.debug({ method: frame.method }, 'dropped with the session it belonged to');
  }

  /**
   * Opens the event stream. Calls wait for it, because most servers drop messages for a stream that is not open, and a
   * call may lead to a server request on the stream.
   */
  ready(): void {
    this.#stream?.close();
    const { environment } = this.#options;
    const session = this.#keeper.key;
    this.#outbox.hold();
    this.#stream = new GetStream({
      environment,
      settled: () => this.#outbox.release(),
      opened: () => this.#tellMissed(),
      // A continued session without a stream has missed nothing. A new session may differ in everything it offers.
      absent: () => {
        this.#posts.lostStream();
        if (session.generation > 0) this.#tellMissed();
      },
      unreachable: () => this.#posts.lostStream(),
      session,
      isPaused: this.#isPaused,
      messages: {
        name: showUrl(environment.url),
        maxMessageBytes: environment.maxMessageBytes,
        message: (frame) => this.#heard(frame),
        fault: (fault) => this.#delivery.fault(fault),
      },
      sessionDoubted: (status) => this.#sessionDoubted(session, status),
    });
  }

  #sessionDoubted(session: SessionKey, status: number): void {
    if (status === 404) {
      if (session.id !== undefined) this.#keeper.renewUnasked(session);
      return this.#posts.lostStream();
    }
    if (session.id === undefined) return;
    void this.#keeper.isKnown(session).then((isKnown) => {
      if (!isKnown) this.#keeper.renewUnasked(session);
    });
  }

  lost(): void {
    this.#outbox.hold();
    this.#stream?.close();
    this.#stream = undefined;
    this.#delivery.withdrawQuestions('the server forgot the session');
    this.#posts.takeOlder(this.#keeper.key.generation, ({ message }) => this.#lostWithSession(message));
  }

  #lostWithSession(message: Outgoing): void {
    const { kind, method } = message.frame;
    this.#outbox.answered(message);
    if (kind !== 'request') return;
    const name = showUrl(this.#options.environment.url);
    const text = `The server at ${name} forgot the session while ${method} was under way; whether it was carried out is not known. A new session is being opened.`;
    this.#failed(message, new BridgeError('ERR_UPSTREAM_CLOSED', text), false);
  }

  renewed(missed: readonly Frame[]): void {
    this.#missed = missed;
    if (this.#stream !== undefined) return;
    this.#tellMissed();
    this.#outbox.release();
  }

  #tellMissed(): void {
    const missed = this.#missed;
    this.#missed = [];
    for (const frame of missed) this.#delivery.message(frame);
  }

  renewalFailed(error: BridgeError): void {
    for (const message of this.#outbox.takeAll()) this.#delivery.failed(message, error);
    this.#outbox.release();
  }

  /** Ends the link. The listener reports the end to the requests that wait. */
  outlived(reason: BridgeError): void {
    this.giveUp(reason);
  }
}

/**
 * True if a message that was rejected with its session may be posted in a new one. Responses and cancellations refer to
 * ids of the old session, and progress notifications to its tokens.
 */
function isWorthRepeating({ kind, method = '' }: Frame): boolean {
  return kind === 'request' || (kind === 'notification' && ![CANCELED, INITIALIZED, PROGRESS].includes(method));
}
