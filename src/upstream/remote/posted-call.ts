/** A message that is posted to a server over any transport, and everything received in answer to it. */
import type { Logger } from 'pino';
import { ListMember } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { UserAnswer, UserPrompt } from '../../http/client/credentials.ts';
import type { HttpCall, HttpHandler, HttpRequest, ResponseHead } from '../../http/client/http-call.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import type { ServerFault } from '../../relay/ports.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';
import { answersId, type Frame, idToken, withId } from '../../wire/frame.ts';
import { takeMessages } from '../server-messages.ts';
import {
  type AnswerForm,
  type AnswerReader,
  type AnswerSink,
  CallErrors,
  classifyAnswer,
  createAnswerReader,
  isBreak,
  isCallLimit,
  type OversizedText,
} from './answer-reader.ts';
import type { Outgoing } from './link-messages.ts';
import { isPassing, MAX_REFUSAL_BYTES, type Refusal, readRefusal } from './refusal.ts';
import type { RemoteEnvironment } from './remote-environment.ts';
import { Resumption } from './resumption.ts';

/**
 * Limit of the bytes that are read of a response whose body says nothing. Some servers send "Accepted" and others a
 * page; reading it to the end keeps the connection reusable.
 */
const MAX_IGNORED_BYTES = 64 * 1024;

/**
 * Time to wait on the session's event stream for the answer to a POST that was cut off. The server may be processing
 * the message, or may never have received it.
 */
export const LATE_ANSWER_MS = 30_000;

/**
 * Decides how the body of a response is read: as an answer in one of its forms, for the reason of a refusal, or not at
 * all, because the response only accepts the message.
 */
export type BodyUse = AnswerForm | 'refusal' | 'nothing';

/** Decides by status and content type. */
export function useOfBody({ status, headers }: ResponseHead): AnswerForm | 'refusal' {
  return status >= 200 && status < 300 ? classifyAnswer(headers['content-type']) : 'refusal';
}

/** Options and rules that all messages of a link have in common. The rules are those of its transport. */
export interface Posting {
  readonly environment: PostingEnvironment;
  readonly useOf: (head: ResponseHead, frame: Frame) => BodyUse;
  /**
   * True if all answers come on the event stream of the session, so that the answer may come even if its POST was cut
   * off.
   */
  readonly answersOnStream: boolean;
  /** True if a response is read on after its answer. Otherwise everything that follows is discarded. */
  readonly readsOn: boolean;
  /** Time that a response may stay open when nothing more is needed of it. 0 leaves that to the host. */
  readonly lingerMs: number;
  /** Creates the request that resumes a broken stream. Undefined if streams cannot be resumed. */
  readonly resume: ((resumed: ResumedStream) => HttpRequest) | undefined;
}

export interface PostingEnvironment extends Pick<RemoteEnvironment, 'http' | 'url' | 'scanner' | 'maxMessageBytes'> {
  readonly log: Pick<Logger, 'debug' | 'error'>;
}

export interface ResumedStream {
  readonly message: Outgoing;
  /** The id of the last event, as a header value. */
  readonly lastEventId: string;
  /** Time since the call began, which counts toward its time limit. */
  readonly elapsedMs: number;
}

/** Receives the events of a posted call. Not called from its constructor, nor after `abort`. */
export interface PostHost {
  /** Called when all bytes of the message have been sent. Not called if the response comes first. */
  left(post: PostedCall): void;
  /** Called when the call needs its user to open a page. May abort the call. */
  askUser?(post: PostedCall, prompt: UserPrompt): Promise<UserAnswer> | undefined;
  /** Called when the POST has its response, before all messages in it. */
  responded(post: PostedCall, head: ResponseHead): void;
  /** Called with the answer, under an id that may differ in form from that of the request. */
  answered?(post: PostedCall, answer: Frame): void;
  /** Called with any other message in the response. */
  received?(post: PostedCall, frame: Frame): void;
  /**
   * Called when the stream of an unanswered call can be resumed after this event. All messages before the event have
   * been received.
   */
  moved?(post: PostedCall, lastEventId: string): void;
  /** Called for an oversized message other than the answer. Without this method it is only logged. */
  faulted?(fault: ServerFault & { readonly error: BridgeError }): void;
  /** Returns true if the session has an event stream, on which answers may come too. */
  hasStream?(): boolean;
  /** Called when the call needs nothing more from the server, but the response has not ended. */
  lingers(post: PostedCall): void;
  /** Called once, as the last call. */
  over(post: PostedCall, end: PostEnd): void;
}

/**
 * Result of a posted call.
 * - `done`: the message was answered, or needed no answer.
 * - `refused`: the server rejected the message itself and did not act on it.
 * - `broken-off`: the server received the message, and its stream ended before the answer; `cause` is given if it
 *   broke. A stream that could have been resumed was, in vain; `status` is that of the last attempt.
 * - `failed`: there is no valid answer. If `wasSent`, the server may have received the message and be processing it.
 */
export type PostEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | {
      readonly kind: 'broken-off';
      readonly cause: BridgeError | undefined;
      readonly wasResumable: boolean;
      readonly status: number | undefined;
    }
  | {
      readonly kind: 'failed';
      readonly why: 'connection' | 'no-answer' | 'oversized' | 'http-sse';
      readonly error: BridgeError;
      readonly wasSent: boolean;
    };

/**
 * - `posting`: the POST has no response yet.
 * - `reading`: a response is being read for the answer. It is empty if it has status 202, with which a server may say
 *   that it answers later and elsewhere.
 * - `refused`: a response other than 2xx is being read, whose body may contain the reason.
 * - `lingering`: nothing more is needed, but the response has not ended. A `body` is still read for messages; without
 *   one, everything is discarded.
 * - `waiting-elsewhere`: the response has ended, and the answer may still come on the event stream of the session.
 *   Without it, the call has the given end.
 * - `waiting-to-resume`: the stream broke and will be resumed.
 * - `resuming`: the GET that resumes the stream has no response yet.
 * - `done`: the call has ended or was aborted.
 */
type PostState =
  | { readonly kind: 'posting' | 'resuming'; readonly http: HttpCall }
  | {
      readonly kind: 'reading';
      readonly http: HttpCall;
      readonly via: 'post' | 'get';
      readonly body: AnswerReader;
      readonly isEmpty: boolean;
    }
  | { readonly kind: 'refused'; readonly http: HttpCall; readonly head: ResponseHead; readonly body: ByteCollector }
  | {
      readonly kind: 'lingering';
      readonly http: HttpCall;
      readonly body: AnswerReader | undefined;
      readonly cancel: () => void;
      ignoredBytes: number;
    }
  | { readonly kind: 'waiting-elsewhere'; readonly cancel: () => void; readonly end: PostEnd }
  | { readonly kind: 'waiting-to-resume'; readonly cancel: () => void }
  | { readonly kind: 'done' };

const DONE: PostState = { kind: 'done' };
const DONE_END: PostEnd = { kind: 'done' };

/**
 * A message to the server and everything received in answer to it: the response of its POST and, if that is a stream
 * that breaks, the responses of the GETs that resume it. [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export class PostedCall extends ListMember implements HttpHandler, AnswerSink {
  readonly message: Outgoing;
  readonly #posting: Posting;
  readonly #host: PostHost;
  readonly #startedMs: number;
  #state: PostState;
  #isPaused = false;
  #isAnswered = false;
  #wasSent = false;
  /** The pause before a resumption that the server asked for, which must be respected. */
  #retryMs: number | undefined = undefined;
  /** Set once the stream has broken, or an event with an id has come before the answer. */
  #resumption: Resumption | undefined = undefined;
  #reportedEventId: string | undefined = undefined;

  /** @param start the POST, or the id of the event after which the answer to a message posted elsewhere is resumed */
  constructor(posting: Posting, host: PostHost, message: Outgoing, start: HttpRequest | { readonly after: string }) {
    super();
    this.message = message;
    this.#posting = posting;
    this.#host = host;
    const { http } = posting.environment;
    this.#startedMs = http.clock.now();
    if ('after' in start) {
      this.#wasSent = true;
      this.#resumption = new Resumption();
      this.#resumption.brokeAt(start.after);
      this.#state = this.#resumeIn(0);
    } else {
      this.#state = { kind: 'posting', http: http.request(start, this) };
    }
  }

  /** True while the answer is awaited, in the response or elsewhere. */
  get isOpen(): boolean {
    if (this.#isAnswered || this.message.frame.kind !== 'request') return false;
    return this.#state.kind !== 'lingering' && this.#state.kind !== 'done';
  }

  /** True once the server has begun to respond. */
  get hasResponse(): boolean {
    return this.#state.kind !== 'posting';
  }

  get wasSent(): boolean {
    return this.#wasSent;
  }

  /** Ends the call. The host is not called anymore. */
  abort(): void {
    const state = this.#state;
    this.#state = DONE;
    if ('cancel' in state) state.cancel();
    if ('http' in state) state.http.abort();
  }

  pause(): void {
    this.#isPaused = true;
    const state = this.#state;
    const isIgnored = state.kind === 'lingering' && state.body === undefined;
    if ('http' in state && !isIgnored) state.http.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if ('http' in this.#state) this.#state.http.resume();
  }

  // ---- from HTTP

  sent(): void {
    if (this.#state.kind !== 'posting') return;
    this.#wasSent = true;
    this.#host.left(this);
  }

  askUser(prompt: UserPrompt): Promise<UserAnswer> | undefined {
    return this.isOpen ? this.#host.askUser?.(this, prompt) : undefined;
  }

  response(head: ResponseHead): void {
    const state = this.#state;
    if (state.kind === 'resuming') return this.#resumed(state.http, head);
    if (state.kind !== 'posting') return;
    this.#wasSent = true;
    const { http } = state;
    const { frame } = this.message;
    const use = this.#posting.useOf(head, frame);
    if (use === 'refusal') {
      this.#state = { kind: 'refused', http, head, body: new ByteCollector() };
      return this.#host.responded(this, head);
    }
    const body = use === 'nothing' ? undefined : this.#createBody(use);
    if (body === undefined || frame.kind !== 'request' || this.#isAnswered) {
      this.#linger(http, body);
      this.#host.responded(this, head);
      return this.#state.kind === 'lingering' ? this.#host.lingers(this) : undefined;
    }
    this.#state = { kind: 'reading', http, via: 'post', body, isEmpty: head.status === 202 };
    this.#host.responded(this, head);
    if (use !== 'neither' || this.#state.kind !== 'reading') return;
    this.#fail('no-answer', this.#errors.notAnAnswer(head.status, head.headers['content-type'] ?? ''));
  }

  #createBody(form: AnswerForm): AnswerReader {
    return createAnswerReader(form, this, this.#posting.environment.maxMessageBytes);
  }

  data(chunk: Buffer): void {
    const state = this.#state;
    switch (state.kind) {
      case 'reading': {
        state.body.push(chunk);
        if (this.#isAnswered && state.body.isStream) return this.#answeredOnStream();
        return this.#reportProgress(state.body.lastEventId);
      }
      case 'refused':
        if (state.body.byteLength < MAX_REFUSAL_BYTES) return state.body.append(chunk);
        state.http.abort();
        return this.end();
      case 'lingering':
        if (state.body !== undefined) return state.body.push(chunk);
        state.ignoredBytes += chunk.length;
        if (state.ignoredBytes >= MAX_IGNORED_BYTES) this.#finish(DONE_END);
        return;
      default:
    }
  }

  #reportProgress(lastEventId: string | undefined): void {
    if (lastEventId === undefined || lastEventId === this.#reportedEventId || !this.isOpen) return;
    this.#reportedEventId = lastEventId;
    this.#host.moved?.(this, lastEventId);
  }

  /**
   * Called when the answer has come on a stream. [spec 2025-11-25 transports#sending-messages-to-the-server] The server
   * should end the stream now. A resumed stream is closed at once.
   */
  #answeredOnStream(): void {
    const state = this.#state;
    if (state.kind !== 'reading') return;
    if (state.via === 'get') return this.#finish(DONE_END);
    this.#linger(state.http, this.#posting.readsOn ? state.body : undefined);
    this.#host.lingers(this);
  }

  #linger(http: HttpCall, body: AnswerReader | undefined): void {
    const { environment, lingerMs } = this.#posting;
    const { clock } = environment.http;
    const cancel = lingerMs > 0 ? clock.after(lingerMs, () => this.#finish(DONE_END)) : NOT_TIMED;
    this.#state = { kind: 'lingering', http, body, cancel, ignoredBytes: 0 };
    if (body === undefined && this.#isPaused) http.resume();
  }

  end(): void {
    const state = this.#state;
    switch (state.kind) {
      case 'reading':
        state.body.end();
        return this.#responseEnded(undefined);
      case 'refused': {
        const refusal = readRefusal(this.#posting.environment.url, state.head, state.body.take());
        return this.#finish({ kind: 'refused', refusal });
      }
      case 'lingering':
        state.body?.end();
        return this.#finish(DONE_END);
      default:
    }
  }

  error(error: BridgeError): void {
    const { kind } = this.#state;
    switch (kind) {
      case 'posting': {
        const mayComeElsewhere = this.#posting.answersOnStream && this.isOpen && this.#wasSent && isBreak(error);
        if (!mayComeElsewhere) return this.#fail('connection', error);
        return this.#awaitElsewhere(this.#failure('connection', error), LATE_ANSWER_MS);
      }
      case 'reading':
        return this.#responseEnded(error);
      case 'resuming':
        return isCallLimit(error) ? this.#fail('connection', error) : this.#scheduleResume(error, undefined);
      case 'refused':
        // The reason is taken as far as it has come.
        return this.end();
      case 'lingering':
        return this.#finish(DONE_END);
      default:
    }
  }

  /** Called when the response has ended. `cause` is given if it broke. */
  #responseEnded(cause: BridgeError | undefined): void {
    const state = this.#state;
    if (state.kind !== 'reading') return;
    if (!this.isOpen) return this.#finish(DONE_END);
    if (isCallLimit(cause)) return this.#fail('connection', cause);
    if (state.body.isStream) {
      if (this.#canResume(state.body.lastEventId)) return this.#scheduleResume(cause, undefined);
      const end: PostEnd = { kind: 'broken-off', cause, wasResumable: false, status: undefined };
      return this.#awaitElsewhere(end, cause === undefined ? this.#ownLimitMs : LATE_ANSWER_MS);
    }
    if (cause !== undefined) return this.#fail('connection', cause);
    const end = this.#failure('no-answer', this.#errors.noAnswer());
    if (state.isEmpty) this.#awaitElsewhere(end, this.#ownLimitMs);
    else this.#finish(end);
  }

  get #errors(): CallErrors {
    return new CallErrors(this.#posting.environment.url, this.message.frame.method);
  }

  // ---- an answer that comes elsewhere

  /**
   * Waits for the answer on the session's event stream. The specification requires the answer in the response to the
   * POST, but some servers send it on the session's stream, and official clients accept it there. If the server itself
   * ended the response, only the time limits of the call apply.
   * @param limitMs 0 for no limit
   */
  #awaitElsewhere(end: PostEnd, limitMs: number): void {
    if (this.#host.hasStream?.() !== true) return this.#finish(end);
    const { clock } = this.#posting.environment.http;
    const cancel = limitMs > 0 ? clock.after(limitMs, () => this.#finish(end)) : NOT_TIMED;
    this.#state = { kind: 'waiting-elsewhere', cancel, end };
  }

  /** The time limit for a request of the bridge's own, which no client cancels. */
  get #ownLimitMs(): number {
    return this.message.reply === undefined ? 0 : LATE_ANSWER_MS;
  }

  /** Call this when the answer has come on the event stream of the session. */
  answeredElsewhere(): void {
    this.#isAnswered = true;
    const state = this.#state;
    switch (state.kind) {
      case 'reading':
        this.#linger(state.http, state.body);
        return this.#host.lingers(this);
      case 'posting':
      case 'refused':
        // The call ends with its own response, which has not been received completely.
        return;
      default:
        this.#finish(DONE_END);
    }
  }

  /** Call this when the session has no event stream anymore. */
  lostStream(): void {
    if (this.#state.kind === 'waiting-elsewhere') this.#finish(this.#state.end);
  }

  // ---- resuming

  /** Notes that the stream broke. Returns true if it can be resumed. */
  #canResume(lastEventId: string | undefined): boolean {
    if (this.#posting.resume === undefined) return false;
    this.#resumption ??= new Resumption();
    return this.#resumption.brokeAt(lastEventId);
  }

  #scheduleResume(cause: BridgeError | undefined, status: number | undefined): void {
    const delayMs = this.#resumption?.nextDelayMs(this.#retryMs);
    if (delayMs === undefined) this.#finish({ kind: 'broken-off', cause, wasResumable: true, status });
    else this.#state = this.#resumeIn(delayMs);
  }

  #resumeIn(delayMs: number): PostState {
    const { http } = this.#posting.environment;
    return { kind: 'waiting-to-resume', cancel: http.clock.after(delayMs, () => this.#resumeNow(http)) };
  }

  #resumeNow(client: HttpClient): void {
    const lastEventId = this.#resumption?.lastEventId;
    const elapsedMs = client.clock.now() - this.#startedMs;
    const request = lastEventId && this.#posting.resume?.({ message: this.message, lastEventId, elapsedMs });
    // Another bridge may have stored an id that cannot be a header value.
    if (!request) return this.#finish({ kind: 'broken-off', cause: undefined, wasResumable: false, status: undefined });
    const http = client.request(request, this);
    if (this.#isPaused) http.pause();
    this.#state = { kind: 'resuming', http };
  }

  #resumed(http: HttpCall, { status, headers }: ResponseHead): void {
    if (status === 200 && classifyAnswer(headers['content-type']) === 'events') {
      this.#resumption?.resumed();
      this.#state = { kind: 'reading', http, via: 'get', body: this.#createBody('events'), isEmpty: false };
      return;
    }
    http.abort();
    const error = this.#errors.resumeRefused(status);
    if (isPassing(status)) this.#scheduleResume(error, status);
    else this.#finish({ kind: 'broken-off', cause: error, wasResumable: true, status });
  }

  // ---- from the reader

  text(bytes: Buffer, eventId?: string): void {
    if (this.#resumption?.isRepeated(eventId) === true) return;
    const { environment, resume } = this.#posting;
    const isMessage = takeMessages(bytes, environment.scanner, (frame) => this.#deliver(frame));
    if (this.#resumption === undefined && eventId !== undefined && resume !== undefined && this.isOpen) {
      // The stream of an answered call is not resumed, so the id of the answer's event is not noted.
      this.#resumption = new Resumption();
      this.#resumption.isRepeated(eventId);
    }
    if (!isMessage) environment.log.debug({ byteLength: bytes.length }, 'skipped an answer that is no message');
  }

  #deliver(frame: Frame): void {
    const { environment, readsOn } = this.#posting;
    if (this.#state.kind === 'done' || (this.#isAnswered && !readsOn)) return;
    const { frame: request } = this.message;
    const isNameless = frame.isResponse && frame.id === undefined;
    if (isNameless && request.kind !== 'request') {
      // Some servers answer notifications. Such an answer is dropped, since it could be taken for the answer to another
      // call.
      return environment.log.debug({ method: request.method }, 'skipped the answer to what needs none');
    }
    // An error without an id in the response to a request means that the server could not read the request's id.
    const message = isNameless && frame.kind === 'error' ? withId(frame, idToken(request)) : frame;
    const isAnswer = request.kind === 'request' && message.isResponse && answersId(message.id, request.id);
    if (!isAnswer) return this.#host.received?.(this, message);
    this.#isAnswered = true;
    this.#host.answered?.(this, message);
  }

  retry(ms: number): void {
    this.#retryMs = ms;
  }

  endpoint(): void {
    if (this.isOpen) this.#fail('http-sse', this.#errors.isHttpSse());
  }

  oversized(text: OversizedText): void {
    const { maxMessageBytes, log } = this.#posting.environment;
    const error = this.#errors.oversized(text, maxMessageBytes);
    const { kind, id } = text;
    // The message is not the answer, which may still come. Nor does a single lost message end a subscription.
    const isAside = kind === 'request' || kind === 'notification' || this.message.frame.method === LISTEN;
    if (isAside && this.#host.faulted !== undefined) return this.#host.faulted({ error, kind, id });
    if (!isAside && this.isOpen) return this.#fail('oversized', error);
    log.error({ code: error.code }, error.message);
  }

  // ---- the end

  #failure(why: Extract<PostEnd, { kind: 'failed' }>['why'], error: BridgeError): PostEnd {
    return { kind: 'failed', why, error, wasSent: this.#wasSent };
  }

  #fail(why: Extract<PostEnd, { kind: 'failed' }>['why'], error: BridgeError): void {
    this.#finish(this.#failure(why, error));
  }

  #finish(end: PostEnd): void {
    this.abort();
    this.#host.over(this, this.#isAnswered ? DONE_END : end);
  }
}

const NOT_TIMED = (): void => {};
