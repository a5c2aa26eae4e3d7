import { BridgeError } from '../../errors.ts';
import type { UserAnswer, UserPrompt } from '../../http/client/credentials.ts';
import { findProgressOf, type RewrittenRequest, rewriteProgress } from '../../mcp/classify/correlators.ts';
import { paramHeadersFor } from '../../mcp/classify/param-headers.ts';
import { isForeignRefusal } from '../../mcp/classify/probe-answer.ts';
import { onlyReads } from '../../mcp/classify/repeatable.ts';
import { type RequestMetadata, readRequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { findHeaderFault, type HeaderLine } from '../../mcp/vocabulary/headers.ts';
import { CALL_TOOL, CANCELED, LIST_TOOLS, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import { parseSpan, readField } from '../../mcp/vocabulary/payload.ts';
import { HEADER_MISMATCH } from '../../mcp/vocabulary/rpc-codes.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../relay/call.ts';
import { answersId, type Frame, idToken, withId } from '../../wire/frame.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import { errorFrame, requestFrame } from '../../wire/write-message.ts';
import type { PostEnd, PostedCall, PostHost } from '../remote/posted-call.ts';
import type { PostedMessage, StatelessCallHost } from './call-host.ts';
import { answerIn, failureOf, messageHeaders, rewriteForPost } from './posting.ts';
import type { AskForPage, KnownTool } from './tool-headers.ts';

/**
 * - `asking`: the list of tools is being fetched, for the headers that they require.
 * - `posting`: the request has been posted.
 * - `done`: the call has ended.
 */
type RequestCallState =
  | { readonly kind: 'asking' }
  | { readonly kind: 'posting'; readonly post: PostedCall }
  | { readonly kind: 'done' };

/**
 * A request of the client other than a subscription. It is sent in a POST, and in another one if the first cannot have
 * had an effect.
 */
export class RequestCall implements PostedMessage, PostHost {
  readonly frame: Frame;
  readonly call: Call | undefined;
  isWaiting = false;
  readonly #host: StatelessCallHost;
  #state: RequestCallState = { kind: 'asking' };
  #request: RewrittenRequest | undefined;
  /** True once the list of tools has been fetched for this call. It is fetched only once. */
  #hasAsked = false;
  /** True once the server has rejected the headers and they are being replaced. */
  #hasCorrected = false;
  #hasRepeated = false;
  #isPaused = false;

  constructor(host: StatelessCallHost, frame: Frame, call: Call | undefined) {
    this.#host = host;
    this.frame = frame;
    this.call = call;
  }

  start(): void {
    if (this.frame.method === CALL_TOOL) this.#callTool();
    else this.#post([]);
  }

  abort(): void {
    const state = this.#state;
    this.#state = { kind: 'done' };
    if (state.kind === 'posting') state.post.abort();
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state.kind === 'posting') this.#state.post.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state.kind === 'posting') this.#state.post.resume();
  }

  // ---- to the server

  #callTool(): void {
    const { frame } = this;
    const name = readToolName(frame);
    // A call without a name is left to the server, which rejects it.
    if (name === undefined) return this.#post([]);
    const tool = this.#host.tools.find(name);
    if (!tool.isSure && !this.#hasAsked) return this.#askForTools();
    const { annotations } = tool;
    if (isHidden(tool)) return this.#refuse(hiddenTool(annotations));
    this.#post(annotations === undefined ? [] : paramHeadersFor(annotations.headers, frame));
  }

  #askForTools(): void {
    this.#state = { kind: 'asking' };
    this.#hasAsked = true;
    void this.#host.tools.refresh(listToolsFor(this, this.#host)).then(() => {
      if (this.#state.kind === 'asking') this.#callTool();
    });
  }

  #post(paramHeaders: readonly HeaderLine[]): void {
    const { server, cookies } = this.#host;
    const { frame: original, call } = this;
    const headers = [...messageHeaders(original), ...paramHeaders];
    const fault = findHeaderFault(headers);
    if (fault !== undefined) return this.#refuse(unfitHeaders(fault));
    this.#request = rewriteForPost(original, server.nextId());
    const { frame } = this.#request;
    const forwarded = this.#host.forwardedWith(call);
    const post = server.post(this, { frame, headers, forwarded, cookies });
    if (this.#isPaused) post.pause();
    this.#state = { kind: 'posting', post };
  }

  // ---- from the post

  left(): void {
    this.#host.left(this);
  }

  responded(): void {
    this.#host.server.responded();
  }

  received(_post: PostedCall, frame: Frame): void {
    if (frame.kind !== 'notification') return this.#host.drop(frame);
    switch (frame.method) {
      case PROGRESS: {
        const restored = this.#restoreProgress(frame);
        if (restored !== undefined) this.#host.notify(this, restored);
        return;
      }
      // [spec 2026-07-28 basic/patterns/cancellation] A server cancels subscriptions only, and this stream belongs to
      // none.
      case CANCELED:
        return;
      default:
        this.#host.notify(this, frame);
    }
  }

  /**
   * Ends the call with a question to the client, which then repeats the call. The server has rejected the request, so
   * it had no effect.
   */
  askUser(_post: PostedCall, prompt: UserPrompt): Promise<UserAnswer> | undefined {
    return this.#host.question.ask(prompt, this.frame, (result) => {
      this.abort();
      this.#host.answered(this, result);
    });
  }

  /**
   * Returns the notification under the client's token, or undefined if it is not about this call or the client asked
   * for no progress.
   */
  #restoreProgress(frame: Frame): Frame | undefined {
    const { progressToken, frame: request } = this.#request ?? {};
    const token = findProgressOf(frame);
    if (progressToken === undefined || !answersId(token?.value, request?.id)) return undefined;
    return rewriteProgress(frame, progressToken, token);
  }

  answered({ message }: PostedCall, answer: Frame): void {
    this.#host.server.matched(answer, message.frame);
    this.#checkRefusal(200, answer);
    this.#answered(answer);
  }

  /** The call has ended with its answer. The rest of the response is ignored. */
  lingers(): void {}

  over({ message }: PostedCall, end: PostEnd): void {
    switch (end.kind) {
      case 'done':
        return;
      case 'refused': {
        const { refusal } = end;
        const answer = answerIn(refusal, message.frame);
        this.#checkRefusal(refusal.status, answer);
        return answer === undefined ? this.#fail(refusal.error) : this.#answered(answer);
      }
      default: {
        const { error, isLost } = failureOf(end, this.#host.server.environment.url, this.frame.method);
        return isLost && this.#mayRepeat() ? this.#repeat() : this.#fail(error);
      }
    }
  }

  #checkRefusal(status: number, answer: Frame | undefined): void {
    if (answer?.kind === 'result') return;
    const code = answer && readField(answer, 'code');
    const { method } = this.frame;
    if (isForeignRefusal({ method, status, code })) this.#host.server.doubted(this.call);
  }

  #answered(answer: Frame): void {
    if (this.#isAboutHeaders(answer)) return this.#correct();
    const { frame } = this;
    const restored = withId(answer, idToken(frame));
    const isPage = frame.method === LIST_TOOLS && answer.kind === 'result';
    this.#state = { kind: 'done' };
    this.#host.answered(this, isPage ? this.#host.tools.pass(isFirstPage(frame), restored) : restored);
  }

  /**
   * True if the server rejected the headers of a tool call, whose tool may require different headers by now.
   * [spec 2026-07-28 transports/streamable-http#client-behavior]
   */
  #isAboutHeaders(answer: Frame): boolean {
    if (answer.kind !== 'error' || this.frame.method !== CALL_TOOL || this.#hasCorrected) return false;
    return readField(answer, 'code') === HEADER_MISMATCH;
  }

  /** Fetches the list of tools and posts the call again. The server has not acted on it. */
  #correct(): void {
    this.#hasCorrected = true;
    this.#askForTools();
  }

  #mayRepeat(): boolean {
    return !this.#hasRepeated && onlyReads(this.frame);
  }

  #repeat(): void {
    this.#hasRepeated = true;
    this.#post([]);
  }

  #refuse(reason: BridgeError): void {
    this.#state = { kind: 'done' };
    this.#host.answered(this, errorFrame(idToken(this.frame), rpcErrorOf(reason)));
  }

  #fail(error: BridgeError): void {
    this.#state = { kind: 'done' };
    this.#host.failed(this, error);
  }
}

function readToolName(frame: Frame): string | undefined {
  const span = findUnmistakable(frame, frame.payloadStart, 'name');
  const name = span === undefined || span === 'unclear' ? undefined : parseSpan(frame.bytes, span);
  return typeof name === 'string' ? name : undefined;
}

function isFirstPage(frame: Frame): boolean {
  return findUnmistakable(frame, frame.payloadStart, 'cursor') === undefined;
}

/**
 * True if the tool's annotations are invalid. A tool whose only fault is a type that was once allowed is not hidden,
 * because servers that use it still check such headers.
 */
function isHidden({ annotations }: KnownTool): boolean {
  return annotations !== undefined && 'invalid' in annotations && annotations.headers.length === 0;
}

function hiddenTool(annotations: KnownTool['annotations']): BridgeError {
  const fault = annotations !== undefined && 'invalid' in annotations ? annotations.invalid : '';
  const message = `This tool cannot be called over HTTP: its schema names headers in a way that is not allowed (${fault}).`;
  return new BridgeError('ERR_UPSTREAM_TOOL', message);
}

function unfitHeaders(fault: string): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_HEADERS',
    `The headers this request would need over HTTP cannot be sent: ${fault}.`,
  );
}

/**
 * Time limit for all pages of the list, because a call waits for it. After that the call is posted without the list.
 */
const LIST_TIMEOUT_MS = 10_000;

/** Requests pages of the list on behalf of the call's client, because a server may return a different list to each. */
export function listToolsFor(
  posted: Pick<PostedMessage, 'frame' | 'call'> & Pick<PostHost, 'askUser'>,
  host: StatelessCallHost,
): AskForPage {
  const { frame, call } = posted;
  const metadata = readRequestMetadata(frame);
  const askUser: PostOnceOptions['askUser'] = (post, prompt) => posted.askUser?.(post, prompt);
  const { clock } = host.server.environment.http;
  const untilMs = clock.now() + LIST_TIMEOUT_MS;
  return (cursor) => {
    if ('fault' in metadata) return Promise.reject(new BridgeError('ERR_WIRE_MESSAGE', metadata.fault));
    const request = createRequest(host.server.nextId(), metadata, cursor);
    return postOnce(request, {
      host,
      forwarded: host.forwardedWith(call),
      timeoutMs: untilMs - clock.now(),
      askUser,
    });
  };
}

function createRequest(id: number, metadata: RequestMetadata, cursor: string | undefined): Frame {
  const request = requestFrame(id, LIST_TOOLS, cursor === undefined ? {} : { cursor });
  // No log level is set, because log messages of this request would reach no client.
  return stampMetadata(request, { ...metadata, logLevel: undefined });
}

interface PostOnceOptions {
  readonly host: StatelessCallHost;
  readonly forwarded: Lane['headers'];
  readonly timeoutMs: number;
  readonly askUser: NonNullable<PostHost['askUser']>;
}

/** Resolves with the answer, a JSON-RPC error included; rejects with a BridgeError. */
function postOnce(frame: Frame, { host, forwarded, timeoutMs, askUser }: PostOnceOptions): Promise<Frame> {
  const { server, cookies } = host;
  const { url, http } = server.environment;
  return new Promise((resolve, reject) => {
    const cancel = http.clock.after(Math.max(0, timeoutMs), () => {
      post.abort();
      reject(
        new BridgeError('ERR_UPSTREAM_TIMEOUT', `The server did not list its tools within ${LIST_TIMEOUT_MS} ms.`),
      );
    });
    const owner: PostHost = {
      left() {},
      responded() {},
      askUser,
      answered: (_, answer) => resolve(answer),
      received: (_, frame) => {
        if (frame.kind !== 'notification') host.drop(frame);
      },
      lingers: () => cancel(),
      over: (_, end) => {
        cancel();
        if (end.kind === 'done') return;
        if (end.kind !== 'refused') return reject(failureOf(end, url, frame.method).error);
        const answer = answerIn(end.refusal, frame);
        if (answer === undefined) reject(end.refusal.error);
        else resolve(answer);
      },
    };
    const post = server.post(owner, { frame, headers: messageHeaders(frame), forwarded, cookies });
  });
}
