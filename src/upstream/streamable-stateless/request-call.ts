import { BridgeError } from '../../errors.ts';
import { isForeignRefusal } from '../../mcp/classify-probe.ts';
import { findProgressOf } from '../../mcp/correlators.ts';
import { findHeaderFault, type HeaderLine } from '../../mcp/header-value.ts';
import { findUnmistakable } from '../../mcp/look-alikes.ts';
import { CALL_TOOL, CANCELLED, LIST_TOOLS, PROGRESS } from '../../mcp/methods.ts';
import { paramHeadersFor } from '../../mcp/param-headers.ts';
import { parseSpan, readField } from '../../mcp/payload.ts';
import { type RewrittenRequest, rewriteProgress } from '../../mcp/rewrite.ts';
import { HEADER_MISMATCH } from '../../mcp/rpc-codes.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { idToken, withId } from '../../wire/splice.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Outgoing } from '../remote/outgoing.ts';
import type { Call, StatelessCallHost } from './call-host.ts';
import { listToolsFor } from './list-tools.ts';
import { Post, type PostEnd, type PostHost } from './post.ts';
import { mayRepeat, messageHeaders, postRequest } from './post-request.ts';
import { rewriteForPost } from './rewrite-for-post.ts';
import type { KnownTool } from './tool-headers.ts';

/**
 * - `asking`: the list of tools is being fetched, for the headers they want.
 * - `posting`: the request is with the server.
 * - `done`: over.
 */
type CallState =
  | { readonly kind: 'asking' }
  | { readonly kind: 'posting'; readonly post: Post }
  | { readonly kind: 'done' };

/** One request of the client, but for subscriptions: a POST, and another where the first cannot have done any harm. */
export class RequestCall implements Call, PostHost {
  readonly message: Outgoing;
  readonly #host: StatelessCallHost;
  #state: CallState = { kind: 'asking' };
  #request: RewrittenRequest | undefined;
  /** The list of tools was asked for because of this call; it is not asked for again. */
  #hasAsked = false;
  /** The server found fault with the headers, and they were made anew. */
  #hasCorrected = false;
  #hasRepeated = false;

  constructor(host: StatelessCallHost, message: Outgoing) {
    this.#host = host;
    this.message = message;
  }

  start(): void {
    if (this.message.frame.method === CALL_TOOL) this.#callTool();
    else this.#post([]);
  }

  abort(): void {
    const state = this.#state;
    this.#state = { kind: 'done' };
    if (state.kind === 'posting') state.post.abort();
  }

  pause(): void {
    if (this.#state.kind === 'posting') this.#state.post.pause();
  }

  resume(): void {
    if (this.#state.kind === 'posting') this.#state.post.resume();
  }

  // ---- to the server

  #callTool(): void {
    const { frame } = this.message;
    const name = readToolName(frame);
    // A call without a name is the server's to refuse.
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
    void this.#host.tools.refresh(listToolsFor(this.message, this.#host)).then(() => {
      if (this.#state.kind === 'asking') this.#callTool();
    });
  }

  #post(paramHeaders: readonly HeaderLine[]): void {
    const { environment, isPaused } = this.#host;
    const { frame: original, exchange } = this.message;
    const headers = [...messageHeaders(original), ...paramHeaders];
    const fault = findHeaderFault(headers);
    if (fault !== undefined) return this.#refuse(unfitHeaders(fault));
    this.#request = rewriteForPost(original, this.#host.nextId());
    const { frame } = this.#request;
    const request = postRequest(environment, { frame, headers, lane: exchange?.lane });
    this.#state = { kind: 'posting', post: new Post({ environment, host: this, frame, request, isPaused }) };
  }

  // ---- from the post

  left(): void {
    this.#host.left(this);
  }

  responded(): void {
    this.#host.responded();
  }

  notified(frame: Frame): void {
    switch (frame.method) {
      case PROGRESS: {
        const restored = this.#restoreProgress(frame);
        if (restored !== undefined) this.#host.notify(this, restored);
        return;
      }
      // [spec 2026-07-28 basic/patterns/cancellation] names a subscription only; this stream is of none
      case CANCELLED:
        return;
      default:
        this.#host.notify(this, frame);
    }
  }

  /** Undefined: it is not about this call, or the client did not ask. */
  #restoreProgress(frame: Frame): Frame | undefined {
    const { progressToken, frame: request } = this.#request ?? {};
    const token = findProgressOf(frame);
    if (progressToken === undefined || token?.value !== request?.id) return undefined;
    return rewriteProgress(frame, progressToken, token);
  }

  ended(end: PostEnd): void {
    switch (end.kind) {
      case 'answered':
        this.#checkRefusal(end.status, end.frame);
        return this.#answered(end.frame);
      case 'refused':
        this.#checkRefusal(end.refusal.status, undefined);
        return this.#fail(end.refusal.error);
      case 'failed':
        return end.isLost && this.#mayRepeat() ? this.#repeat() : this.#fail(end.error);
      case 'accepted':
    }
  }

  #checkRefusal(status: number, answer: Frame | undefined): void {
    if (answer?.kind === 'result') return;
    const code = answer && readField(answer, 'code');
    const { method } = this.message.frame;
    if (isForeignRefusal({ method, status, code })) this.#host.doubted(this);
  }

  #answered(answer: Frame): void {
    if (this.#isAboutHeaders(answer)) return this.#correct();
    const { frame } = this.message;
    const restored = withId(answer, idToken(frame));
    const isPage = frame.method === LIST_TOOLS && answer.kind === 'result';
    this.#state = { kind: 'done' };
    this.#host.answered(this, isPage ? this.#host.tools.pass(isFirstPage(frame), restored) : restored);
  }

  /** [spec 2026-07-28 transports/streamable-http#client-behavior] the tool may want other headers than it used to */
  #isAboutHeaders(answer: Frame): boolean {
    if (answer.kind !== 'error' || this.message.frame.method !== CALL_TOOL || this.#hasCorrected) return false;
    return readField(answer, 'code') === HEADER_MISMATCH;
  }

  /** The server has not acted on the call, so it can be sent again. */
  #correct(): void {
    this.#hasCorrected = true;
    this.#askForTools();
  }

  #mayRepeat(): boolean {
    return !this.#hasRepeated && mayRepeat(this.message.frame);
  }

  #repeat(): void {
    this.#hasRepeated = true;
    this.#post([]);
  }

  #refuse(reason: BridgeError): void {
    this.#state = { kind: 'done' };
    this.#host.answered(this, errorFrame(idToken(this.message.frame), rpcErrorOf(reason)));
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

/** Not if all that is wrong is a type that was allowed once: such headers are still checked by servers that use it. */
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
