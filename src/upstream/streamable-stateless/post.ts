import { BridgeError } from '../../errors.ts';
import type { UserAnswer, UserPrompt } from '../../http/client/credentials.ts';
import type { HttpCall, HttpHandler, HttpRequest, ResponseHead } from '../../http/client/http-call.ts';
import { showUrl } from '../../http/shown-url.ts';
import { ModernQuestions } from '../../mcp/classify/modern-questions.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';
import { answersId, type Frame, hasPlainId, type JsonRpcId } from '../../wire/frame.ts';
import {
  type AnswerReader,
  type AnswerSink,
  CallErrors,
  classifyAnswer,
  createAnswerReader,
  isBreak,
  type OversizedText,
} from '../remote/answer-reader.ts';
import { MAX_REFUSAL_BYTES, type Refusal, readRefusal } from '../remote/refusal.ts';
import type { RemoteEnvironment } from '../remote/remote-environment.ts';
import { takeMessages } from '../server-messages.ts';

/** Time that a response may stay open after everything needed has been received. Then its connection is closed. */
const LINGER_MS = 1000;

/**
 * Result of a post.
 * - `answered`: the server's JSON-RPC response to this request, under the request's id.
 * - `accepted`: the server accepted a notification.
 * - `refused`: the status was not 2xx, and the body held no JSON-RPC response.
 * - `failed`: there is no valid answer. `isLost` is true if the server received the request and the answer was lost.
 */
export type PostEnd =
  | { readonly kind: 'answered'; readonly frame: Frame; readonly status: number }
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | {
      readonly kind: 'failed';
      readonly error: BridgeError;
      readonly isLost: boolean;
    };

/** Receives the events of a post. Never called from within the post's constructor, nor after `abort`. */
export interface PostHost {
  /** Called when all bytes of the request have been sent. The call may be omitted if the post ends. */
  left(): void;
  /** Called when the server has begun to respond. */
  responded(): void;
  /** Called with a notification that comes before the answer. */
  notified(frame: Frame): void;
  /** Called when the post needs its user to open a page. May abort the post. */
  askUser?(prompt: UserPrompt): Promise<UserAnswer> | undefined;
  /** Called once, as the last call. */
  ended(end: PostEnd): void;
}

export interface PostOptions {
  readonly environment: RemoteEnvironment;
  readonly host: PostHost;
  /** The message as the server gets it. */
  readonly frame: Frame;
  readonly request: HttpRequest;
  readonly isPaused: boolean;
}

/**
 * - `posting`: there is no response yet.
 * - `reading`: a 2xx response is being read.
 * - `refused`: another response is being read, whose body may contain the reason.
 * - `lingering`: the answer has been received, or none is needed, but the response has not ended.
 * - `done`: the post has ended or was aborted.
 */
type PostState =
  | { readonly kind: 'posting'; readonly http: HttpCall }
  | { readonly kind: 'reading'; readonly http: HttpCall; readonly body: AnswerReader }
  | { readonly kind: 'refused'; readonly http: HttpCall; readonly head: ResponseHead; readonly body: ByteCollector }
  | { readonly kind: 'lingering'; readonly http: HttpCall; readonly cancel: () => void }
  | { readonly kind: 'done' };

const DONE: PostState = { kind: 'done' };

/**
 * A message to a modern server and everything received in answer to it: a JSON text, or a stream for this request
 * alone, which cannot be resumed. [spec 2026-07-28 transports/streamable-http#receiving-messages]
 */
export class Post implements HttpHandler, AnswerSink {
  readonly #options: PostOptions;
  readonly #needsAnswer: boolean;
  #state: PostState;
  #wasSent = false;
  #questions: ModernQuestions | undefined = undefined;

  constructor(options: PostOptions) {
    const { environment, frame, request, isPaused } = options;
    this.#options = options;
    this.#needsAnswer = frame.kind === 'request';
    const http = environment.http.request(request, this);
    if (isPaused) http.pause();
    this.#state = { kind: 'posting', http };
  }

  /**
   * Ends the post, which to the server cancels the request. The host is not called any more.
   * [spec 2026-07-28 transports/streamable-http#cancellation]
   */
  abort(): void {
    const state = this.#state;
    this.#state = DONE;
    if (state.kind === 'lingering') state.cancel();
    if (state.kind !== 'done') state.http.abort();
  }

  pause(): void {
    if ('http' in this.#state && this.#state.kind !== 'lingering') this.#state.http.pause();
  }

  resume(): void {
    if ('http' in this.#state) this.#state.http.resume();
  }

  // ---- from HTTP

  sent(): void {
    if (this.#state.kind !== 'posting') return;
    this.#wasSent = true;
    this.#options.host.left();
  }

  askUser(prompt: UserPrompt): Promise<UserAnswer> | undefined {
    return this.#options.host.askUser?.(prompt);
  }

  response(head: ResponseHead): void {
    const state = this.#state;
    if (state.kind !== 'posting') return;
    this.#wasSent = true;
    this.#options.host.responded();
    if (head.status < 200 || head.status >= 300) {
      this.#state = { kind: 'refused', http: state.http, head, body: new ByteCollector() };
      return;
    }
    if (!this.#needsAnswer) return this.#lingerWith(state.http, { kind: 'accepted' });
    const contentType = head.headers['content-type'];
    const form = classifyAnswer(contentType);
    if (form === 'neither') return this.#fail(this.#errors.notAnAnswer(head.status, contentType ?? ''));
    const body = createAnswerReader(form, this, this.#options.environment.maxMessageBytes);
    this.#state = { kind: 'reading', http: state.http, body };
  }

  data(chunk: Buffer): void {
    const state = this.#state;
    if (state.kind === 'refused') {
      if (state.body.byteLength < MAX_REFUSAL_BYTES) return state.body.append(chunk);
      state.http.abort();
      return this.end();
    }
    if (state.kind === 'reading') state.body.push(chunk);
  }

  end(): void {
    const state = this.#state;
    switch (state.kind) {
      case 'refused':
        return this.#refused(readRefusal(this.#options.environment.url, state.head, state.body.take()));
      case 'lingering':
        state.cancel();
        this.#state = DONE;
        return;
      case 'reading':
        state.body.end();
        if (this.#state.kind === 'reading') this.#endedWithoutAnswer(state.body);
        return;
      default:
    }
  }

  get #errors(): CallErrors {
    const { environment, frame } = this.#options;
    return new CallErrors(environment.url, frame.method);
  }

  #endedWithoutAnswer({ isStream }: AnswerReader): void {
    if (isStream) return this.#lose(undefined);
    this.#fail(this.#errors.noAnswer());
  }

  /**
   * Handles a response other than 2xx. A JSON-RPC error without an id is about the posted request if the status is 400
   * or 404, because the server checks headers before it reads the body.
   */
  #refused(refusal: Refusal): void {
    const { status, frame } = refusal;
    const isAboutThis = answersId(frame?.id, this.#options.frame.id);
    const isNameless = frame?.id === undefined && (status === 400 || status === 404);
    const isAnswer = this.#needsAnswer && frame !== undefined && (isAboutThis || isNameless);
    this.#finish(isAnswer ? { kind: 'answered', frame, status } : { kind: 'refused', refusal });
  }

  error(error: BridgeError): void {
    switch (this.#state.kind) {
      case 'refused':
      case 'lingering':
        return this.end();
      case 'posting':
      case 'reading':
        return isBreak(error) && this.#wasSent && this.#needsAnswer ? this.#lose(error) : this.#fail(error);
      default:
    }
  }

  // ---- from the reader

  text(bytes: Buffer): void {
    const { log, scanner } = this.#options.environment;
    const isMessage = takeMessages(bytes, scanner, (frame) => this.#take(frame));
    if (!isMessage) log.debug({ byteLength: bytes.length }, 'skipped an answer that is no message');
  }

  #take(frame: Frame): void {
    if (this.#state.kind !== 'reading') return;
    const { environment, frame: request, host } = this.#options;
    switch (frame.kind) {
      case 'request':
        // [spec 2026-07-28 transports/streamable-http#receiving-messages] A server must not send requests, so they are
        // not answered.
        this.#questions ??= new ModernQuestions();
        return this.#questions.ignore(frame, environment.log);
      case 'notification':
        return host.notified(frame);
      default: {
        // An error without an id in the response to a request means that the server could not read the request's id.
        const isAnswer = answersId(frame.id, request.id) || (frame.kind === 'error' && frame.id === undefined);
        if (!isAnswer) return environment.idWarnings.unknown(frame.id as JsonRpcId);
        if (frame.id !== undefined && (frame.id !== request.id || !hasPlainId(frame))) {
          environment.idWarnings.changed(frame.id, request.id as JsonRpcId);
        }
        this.#answered(frame, this.#state);
      }
    }
  }

  /**
   * Called when the answer has come. [spec 2026-07-28 transports/streamable-http#receiving-messages] The server should
   * end the stream now.
   */
  #answered(frame: Frame, { http, body }: Extract<PostState, { kind: 'reading' }>): void {
    const end: PostEnd = { kind: 'answered', frame, status: 200 };
    if (body.isStream) this.#lingerWith(http, end);
    else this.#finish(end);
  }

  /** Reports the end of the post, although the response has not ended. */
  #lingerWith(http: HttpCall, end: PostEnd): void {
    const cancel = this.#options.environment.http.clock.after(LINGER_MS, () => this.abort());
    this.#state = { kind: 'lingering', http, cancel };
    http.resume();
    this.#options.host.ended(end);
  }

  retry(): void {
    // The retry pause is ignored, because streams of this era are not resumed.
  }

  endpoint(): void {
    if (this.#state.kind === 'reading') this.#fail(this.#errors.isHttpSse());
  }

  oversized(text: OversizedText): void {
    const { environment, frame } = this.#options;
    const error = this.#errors.oversized(text, environment.maxMessageBytes);
    // A message other than the answer does not end the post, since the answer may still come. Nor does a single lost
    // message end a subscription.
    const isAside = text.kind === 'request' || text.kind === 'notification' || frame.method === LISTEN;
    if (!isAside) return this.#fail(error);
    environment.log.error({ code: error.code }, error.message);
  }

  // ---- the end

  #lose(cause: BridgeError | undefined): void {
    const { environment, frame } = this.#options;
    this.abort();
    const error = lostAnswer(environment.url, frame.method, cause);
    this.#options.host.ended({ kind: 'failed', error, isLost: true });
  }

  #fail(error: BridgeError): void {
    this.abort();
    this.#options.host.ended({ kind: 'failed', error, isLost: false });
  }

  #finish(end: PostEnd): void {
    this.#state = DONE;
    this.#options.host.ended(end);
  }
}

/**
 * Creates the error for a request that arrived and whose answer was lost. [spec 2026-07-28 transports/streamable-http]
 * Streams cannot be resumed.
 */
export function lostAnswer(url: URL, method: string | undefined, cause: BridgeError | undefined): BridgeError {
  const detail = cause === undefined ? '' : ` ${cause.message}`;
  return new BridgeError(
    'ERR_UPSTREAM_DELIVERY',
    `The server at ${showUrl(url)} ended its response before the answer to ${method ?? 'a message'}. Whether the call was carried out is not known, so it is not sent again.${detail}`,
    { cause, data: { delivery: 'unknown' } },
  );
}
