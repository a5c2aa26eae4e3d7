import { ListMember } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import type { UserAnswer, UserPrompt } from '../../http/client/credentials.ts';
import type { HttpCall, HttpHandler, HttpRequest, ResponseHead } from '../../http/client/http-call.ts';
import type { ServerFault } from '../../relay/ports.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';
import { answersId, type Frame, idToken, withId } from '../../wire/frame.ts';
import {
  type AnswerForm,
  type AnswerReader,
  type AnswerSink,
  CallErrors,
  classifyAnswer,
  createAnswerReader,
  isCallLimit,
  LATE_ANSWER_MS,
  type OversizedText,
} from '../remote/answer-reader.ts';
import { encodeEventId, toRetryPause } from '../remote/event-stream-reader.ts';
import type { Outgoing } from '../remote/link-messages.ts';
import { isPassing, MAX_REFUSAL_BYTES, type Refusal, readRefusal } from '../remote/refusal.ts';
import type { SessionEnvironment } from '../remote/remote-environment.ts';
import type { SessionKey } from '../remote/session-key.ts';
import { SeenEvents, takeMessages } from '../server-messages.ts';
import { postRequest, resumeRequest } from './call-requests.ts';

/**
 * - `posting`: the POST has no response yet.
 * - `reading`: a 2xx response is being read.
 * - `refused`: another response is being read, whose body may contain the reason.
 * - `waiting`: the stream broke and will be resumed.
 * - `resuming`: the GET that resumes the stream has no response yet.
 * - `elsewhere`: the call's own response has ended, and the answer may still come on the event stream of the session.
 * - `done`: the call has ended or was aborted.
 */
type CallState =
  | { readonly kind: 'posting' | 'resuming'; readonly http: HttpCall }
  | {
      readonly kind: 'reading';
      readonly http: HttpCall;
      readonly via: 'post' | 'get';
      readonly body: AnswerReader;
      /** True for a 202, with which the server says that it will answer later and elsewhere. */
      readonly isEmpty: boolean;
    }
  | { readonly kind: 'refused'; readonly http: HttpCall; readonly head: ResponseHead; readonly body: ByteCollector }
  | { readonly kind: 'waiting'; readonly cancel: () => void }
  | { readonly kind: 'elsewhere'; readonly cancel: () => void; readonly error: BridgeError }
  | { readonly kind: 'done' };

const DONE: CallState = { kind: 'done' };

/**
 * A message to the server and everything received in answer to it: the response of its POST and, if that is a stream
 * that breaks, the responses of the GETs that resume it. [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export class ServerCall extends ListMember implements HttpHandler, AnswerSink {
  readonly message: Outgoing;
  /** The session that the message was posted in. */
  readonly session: SessionKey;
  readonly #environment: SessionEnvironment;
  readonly #host: ServerCallHost<ServerCall>;
  readonly #needsAnswer: boolean;
  #state: CallState;
  #isPaused: boolean;
  #isAnswered = false;
  #wasSent = false;
  #startedMs: number;
  /** Set once the stream has broken. */
  #resume: ResumePlan | undefined = undefined;
  /** The pause before a resumption that the server asked for, which must be respected. */
  #retryMs: number | undefined = undefined;
  /** Set once an event with an id has come before the answer. */
  #seen: SeenEvents | undefined = undefined;
  #notedEventId: string | undefined = undefined;

  constructor(
    environment: SessionEnvironment,
    host: ServerCallHost<ServerCall>,
    message: Outgoing,
    session: SessionKey,
    isPaused: boolean,
  ) {
    super();
    this.message = message;
    this.session = session;
    this.#environment = environment;
    this.#host = host;
    this.#needsAnswer = message.frame.kind === 'request';
    this.#isPaused = isPaused;
    this.#startedMs = environment.http.clock.now();
    this.#state =
      message.resumesAfter === undefined
        ? { kind: 'posting', http: this.#begin(postRequest(environment, message, session)) }
        : this.#resumeElsewhere(message.resumesAfter);
  }

  /** Resumes the answer to a message that another bridge has posted. */
  #resumeElsewhere(lastEventId: string): CallState {
    this.#wasSent = true;
    this.#plan().brokeAt(lastEventId);
    return { kind: 'waiting', cancel: this.#resumeIn(0) };
  }

  /** True while the call needs an answer and has none. */
  get isOpen(): boolean {
    return this.#needsAnswer && !this.#isAnswered && this.#state.kind !== 'done';
  }

  /** True once the server has begun to respond. */
  get hasResponse(): boolean {
    return this.#state.kind !== 'posting';
  }

  get wasSent(): boolean {
    return this.#wasSent;
  }

  /** Ends the call. The host is not called any more. */
  abort(): void {
    const state = this.#state;
    this.#state = DONE;
    if ('cancel' in state) state.cancel();
    else if (state.kind !== 'done') state.http.abort();
  }

  pause(): void {
    this.#isPaused = true;
    if ('http' in this.#state) this.#state.http.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if ('http' in this.#state) this.#state.http.resume();
  }

  #begin(request: HttpRequest): HttpCall {
    const call = this.#environment.http.request(request, this);
    if (this.#isPaused) call.pause();
    return call;
  }

  // ---- from HTTP

  sent(): void {
    if (this.#state.kind !== 'posting') return;
    this.#wasSent = true;
    this.#host.left(this);
  }

  response(head: ResponseHead): void {
    const state = this.#state;
    if (state.kind === 'resuming') return this.#resumed(state.http, head);
    if (state.kind !== 'posting') return;
    this.#wasSent = true;
    const isAccepted = head.status >= 200 && head.status < 300;
    const contentType = head.headers['content-type'];
    const form = classifyAnswer(contentType);
    this.#state = isAccepted
      ? { kind: 'reading', http: state.http, via: 'post', body: this.#createBody(form), isEmpty: head.status === 202 }
      : { kind: 'refused', http: state.http, head, body: new ByteCollector() };
    this.#host.responded(this, head);
    if (this.#state.kind !== 'reading') return;
    if (!this.#needsAnswer || this.#isAnswered) return this.#host.lingers(this);
    if (form === 'neither') this.#fail(this.#errors.notAnAnswer(head.status, contentType ?? ''));
  }

  #createBody(form: AnswerForm): AnswerReader {
    return createAnswerReader(form, this, this.#environment.maxMessageBytes);
  }

  askUser(prompt: UserPrompt): Promise<UserAnswer> | undefined {
    return this.isOpen ? this.#host.askUser(this, prompt) : undefined;
  }

  data(chunk: Buffer): void {
    const state = this.#state;
    if (state.kind === 'refused') {
      if (state.body.byteLength < MAX_REFUSAL_BYTES) return state.body.append(chunk);
      state.http.abort();
      return this.end();
    }
    if (state.kind !== 'reading') return;
    const wasAnswered = this.#isAnswered;
    state.body.push(chunk);
    if (!wasAnswered && this.#isAnswered && state.body.isStream) return this.#answeredOnStream();
    if (this.isOpen) this.#noteProgress(state.body.lastEventId);
  }

  #noteProgress(lastEventId: string | undefined): void {
    if (lastEventId === undefined || lastEventId === this.#notedEventId) return;
    this.#notedEventId = lastEventId;
    this.#host.moved(this, lastEventId);
  }

  /**
   * Called when the answer has come on a stream. [spec 2025-11-25 transports#sending-messages-to-the-server] The server
   * should end the stream now. A resumed stream is closed at once.
   */
  #answeredOnStream(): void {
    if (this.#state.kind !== 'reading') return;
    if (this.#state.via === 'post') return this.#host.lingers(this);
    this.abort();
    this.#host.ended(this, { kind: 'done' });
  }

  end(): void {
    const state = this.#state;
    if (state.kind === 'refused') {
      if (this.#isAnswered) return this.#finish({ kind: 'done' });
      const refusal = readRefusal(this.#environment.url, state.head, state.body.take());
      return this.#finish({ kind: 'refused', refusal });
    }
    if (state.kind !== 'reading') return;
    state.body.end();
    this.#streamEnded(undefined);
  }

  error(error: BridgeError): void {
    const { kind } = this.#state;
    if (kind === 'refused') return this.end();
    if (kind === 'reading') return this.#streamEnded(error);
    if (kind === 'resuming' && !isCallLimit(error)) return this.#scheduleResume(error, undefined);
    this.#fail(error);
  }

  /** Called when the response has ended. `cause` is given if it broke. */
  #streamEnded(cause: BridgeError | undefined): void {
    const state = this.#state;
    if (state.kind !== 'reading') return;
    if (!this.isOpen) return this.#finish({ kind: 'done' });
    if (state.body.isStream && !isCallLimit(cause)) {
      const plan = this.#plan();
      plan.brokeAt(state.body.lastEventId);
      if (plan.lastEventId !== undefined) return this.#scheduleResume(cause, undefined);
      return this.#awaitElsewhere(this.#errors.lost(undefined, cause), cause);
    }
    if (state.isEmpty && cause === undefined) return this.#awaitElsewhere(this.#errors.noAnswer(), undefined);
    this.#fail(cause ?? this.#errors.noAnswer());
  }

  // ---- an answer that comes elsewhere

  /**
   * Waits for the answer on the session's event stream. The specification requires the answer in the response to the
   * POST, but some servers send it on the session's stream, and official clients accept it there. If the server itself
   * ended the response, only the time limits of the call apply.
   */
  #awaitElsewhere(error: BridgeError, cause: BridgeError | undefined): void {
    if (!this.#host.hasStream()) return this.#fail(error);
    const isLimited = cause !== undefined || this.message.reply !== undefined;
    const fail = (): void => this.#fail(error);
    const cancel = isLimited ? this.#environment.http.clock.after(LATE_ANSWER_MS, fail) : (): void => {};
    this.#state = { kind: 'elsewhere', cancel, error };
  }

  /** Call this when the answer has come on the event stream of the session. */
  answeredElsewhere(): void {
    this.#isAnswered = true;
    const { kind } = this.#state;
    if (kind === 'reading') return this.#host.lingers(this);
    // The call ends with its own response, which has not been received completely.
    if (kind === 'posting' || kind === 'refused') return;
    this.abort();
    this.#host.ended(this, { kind: 'done' });
  }

  /** Call this when the session has no event stream any more. */
  lostStream(): void {
    if (this.#state.kind === 'elsewhere') this.#fail(this.#state.error);
  }

  get #errors(): CallErrors {
    return new CallErrors(this.#environment.url, this.message.frame.method);
  }

  // ---- resuming

  #plan(): ResumePlan {
    this.#resume ??= new ResumePlan();
    return this.#resume;
  }

  #scheduleResume(cause: BridgeError | undefined, status: number | undefined): void {
    const plan = this.#plan();
    const delayMs = plan.nextDelayMs(this.#retryMs);
    if (delayMs === undefined) return this.#fail(this.#errors.lost(plan.lastEventId, cause), status);
    this.#state = { kind: 'waiting', cancel: this.#resumeIn(delayMs) };
  }

  /** Returns a function that cancels the resumption. */
  #resumeIn(delayMs: number): () => void {
    const plan = this.#plan();
    const { clock } = this.#environment.http;
    return clock.after(delayMs, () => {
      const elapsedMs = clock.now() - this.#startedMs;
      const { message, session } = this;
      const lastEventId = plan.lastEventId as string; // or there were no delay
      const request = resumeRequest(this.#environment, { message, session, lastEventId, elapsedMs });
      this.#state = { kind: 'resuming', http: this.#begin(request) };
    });
  }

  #resumed(http: HttpCall, { status, headers }: ResponseHead): void {
    if (status === 200 && classifyAnswer(headers['content-type']) === 'events') {
      this.#seen?.resumed();
      this.#state = { kind: 'reading', http, via: 'get', body: this.#createBody('events'), isEmpty: false };
      return;
    }
    http.abort();
    const error = this.#errors.resumeRefused(status);
    if (this.#plan().mayTryAgain(status)) return this.#scheduleResume(error, status);
    this.#fail(this.#errors.lost('', error), status);
  }

  // ---- from the reader

  text(bytes: Buffer, eventId?: string): void {
    if (this.#seen?.isRepeated(eventId) === true) return;
    this.#resume?.progressed();
    const { log, scanner } = this.#environment;
    const isMessage = takeMessages(bytes, scanner, (frame) => this.#deliver(frame));
    if (this.#seen === undefined && eventId !== undefined && this.isOpen) {
      // The stream of an answered call is not resumed, so the id of the answer's event is not noted.
      this.#seen = new SeenEvents();
      this.#seen.isRepeated(eventId);
    }
    if (!isMessage) log.debug({ byteLength: bytes.length }, 'skipped an answer that is no message');
  }

  #deliver(frame: Frame): void {
    if (this.#state.kind === 'done') return;
    const { frame: request } = this.message;
    const isNameless = frame.isResponse && frame.id === undefined;
    if (isNameless && !this.#needsAnswer) {
      // Some servers answer notifications. Such an answer is dropped, since it could be taken for the answer to another
      // call.
      return this.#environment.log.debug({ method: request.method }, 'skipped the answer to what needs none');
    }
    // An error without an id in the response to a request means that the server could not read the request's id.
    const message = isNameless && frame.kind === 'error' ? withId(frame, idToken(request)) : frame;
    if (message.isResponse && answersId(message.id, request.id)) this.#isAnswered = true;
    this.#host.received(this, message);
  }

  retry(ms: number): void {
    this.#retryMs = ms;
  }

  endpoint(): void {
    if (this.isOpen) this.#fail(this.#errors.isHttpSse());
  }

  oversized(text: OversizedText): void {
    const { maxMessageBytes, log } = this.#environment;
    const error = this.#errors.oversized(text, maxMessageBytes);
    const { kind, id } = text;
    // The message is not the answer, which may still come.
    if (kind === 'request' || kind === 'notification') return this.#host.faulted({ error, kind, id });
    if (this.isOpen) this.#fail(error);
    else log.error({ code: error.code }, error.message);
  }

  // ---- the end

  #fail(error: BridgeError, status?: number): void {
    this.abort();
    if (this.#isAnswered) return this.#host.ended(this, { kind: 'done' });
    this.#host.ended(this, { kind: 'failed', error, wasSent: this.#wasSent, status });
  }

  #finish(end: CallEnd): void {
    this.#state = DONE;
    this.#host.ended(this, end);
  }
}

/**
 * Pause before a resumption if the server asks for none. [spec WHATWG HTML server-sent events] suggests a few seconds;
 * since a call is waiting, it is one second.
 */
const DEFAULT_RETRY_MS = 1000;
const MAX_BACKOFF_MS = 30_000;
/** Consecutive failed attempts after which the call is given up. They take about a quarter of a minute. */
const MAX_FAILURES = 4;

/**
 * Decides when and from which event a broken stream is resumed. A server may end its connection at any time after it
 * has sent an event id, and expects the client back after `retry`.
 * [spec 2025-11-25 transports#sending-messages-to-the-server]
 */
class ResumePlan {
  #lastEventId: string | undefined = undefined;
  #failures = -1;

  /** Id of the last event as a header value, or undefined if there is nothing to resume from. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /** Call this when the stream has ended. If it held no event id, the id that it was resumed from is kept. */
  brokeAt(lastEventId: string | undefined): void {
    this.#lastEventId = (lastEventId && encodeEventId(lastEventId)) ?? this.#lastEventId;
    this.#failures = -1;
  }

  progressed(): void {
    this.#failures = -1;
  }

  mayTryAgain(status: number): boolean {
    return isPassing(status);
  }

  /**
   * Returns the pause before the next attempt, or undefined if there is none.
   * @param retryMs pause that the server asked for
   */
  nextDelayMs(retryMs = DEFAULT_RETRY_MS): number | undefined {
    this.#failures += 1;
    if (this.#lastEventId === undefined || this.#failures >= MAX_FAILURES) return undefined;
    const backoffMs = this.#failures === 0 ? 0 : Math.min(MAX_BACKOFF_MS, DEFAULT_RETRY_MS * 2 ** this.#failures);
    return toRetryPause(Math.max(retryMs, backoffMs));
  }
}

/**
 * Result of a call.
 * - `done`: the message was answered, or needed no answer.
 * - `refused`: the server rejected the message itself and did not act on it.
 * - `failed`: the call will not be answered. `wasSent` is true if the server may have received the message and be
 *   processing it. `status` is that of the response that ended the call, if there was one.
 */
export type CallEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | {
      readonly kind: 'failed';
      readonly error: BridgeError;
      readonly wasSent: boolean;
      readonly status: number | undefined;
    };

/** The link that has started a call and receives its events. */
export interface ServerCallHost<Call> {
  /** Returns true if the session has an event stream, on which answers may come too. */
  hasStream(): boolean;
  left(call: Call): void;
  /** Called when the call needs its user to open a page. */
  askUser(call: Call, prompt: UserPrompt): Promise<UserAnswer> | undefined;
  /** Called when the POST has its response, before all messages in it. */
  responded(call: Call, head: ResponseHead): void;
  /** Called with each message of the server in the response to this call. */
  received(call: Call, frame: Frame): void;
  /**
   * Called when an unanswered call's stream can be resumed after this event. All messages before the event have been
   * received.
   */
  moved(call: Call, lastEventId: string): void;
  /** Called for an oversized message other than the answer. */
  faulted(fault: ServerFault): void;
  /** Called when the call needs nothing more from the server, but the response has not ended. */
  lingers(call: Call): void;
  /** Called once, as the last call, unless the call was aborted. */
  ended(call: Call, end: CallEnd): void;
}
