import { BridgeError } from '../../errors.ts';
import { findCanceledId, rewriteSubscriptionId } from '../../mcp/classify/correlators.ts';
import { missedChanges } from '../../mcp/translate/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { CANCELED, LISTEN_ACKNOWLEDGED, TOOLS_CHANGED } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call } from '../../relay/call.ts';
import { type Frame, idToken, type JsonRpcId, withId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { PostEnd, PostedCall, PostHost } from '../remote/posted-call.ts';
import { isPassing } from '../remote/refusal.ts';
import type { PostedMessage, StatelessCallHost } from './call-host.ts';
import { answerIn, failureOf, messageHeaders, rewriteForPost } from './posting.ts';

/**
 * - `idle`: not started, and not counted as a subscription.
 * - `posting`: the request is posted, or its stream is open.
 * - `waiting`: the stream broke and will be opened again.
 * - `done`: the subscription has ended.
 */
type ListenState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'posting'; readonly post: PostedCall; readonly id: JsonRpcId }
  | { readonly kind: 'waiting'; readonly cancel: () => void }
  | { readonly kind: 'done' };

/**
 * A `subscriptions/listen`. To the client it is one stream that lasts as long as the client wants. To the server it is
 * a new request each time the connection breaks. [spec 2026-07-28 basic/patterns/subscriptions]
 */
export class ListenCall implements PostedMessage, PostHost {
  readonly frame: Frame;
  readonly call: Call | undefined;
  isWaiting = false;
  readonly #host: StatelessCallHost;
  readonly #pause = new ListenPause();
  #isPaused = false;
  #state: ListenState = { kind: 'idle' };
  /** True once the client has received its acknowledgment. After that it is not told of broken streams. */
  #isAcknowledged = false;
  /** Time of the acknowledgment of the current stream, or undefined before it. */
  #openedMs: number | undefined;

  constructor(host: StatelessCallHost, frame: Frame, call: Call | undefined) {
    this.#host = host;
    this.frame = frame;
    this.call = call;
  }

  start(): void {
    if (this.#host.server.addSubscription()) return this.#post();
    this.#state = { kind: 'done' };
    this.#host.answered(this, errorFrame(idToken(this.frame), rpcErrorOf(TOO_MANY_SUBSCRIPTIONS)));
  }

  #post(): void {
    const { server, cookies } = this.#host;
    const { frame: original, call } = this;
    const id = server.nextId();
    const { frame } = rewriteForPost(original, id);
    const forwarded = this.#host.forwardedWith(call);
    const post = server.post(this, { frame, headers: messageHeaders(original), forwarded, cookies });
    if (this.#isPaused) post.pause();
    this.#openedMs = undefined;
    this.#state = { kind: 'posting', id, post };
  }

  abort(): void {
    const state = this.#state;
    this.#end();
    if (state.kind === 'posting') state.post.abort();
    else if (state.kind === 'waiting') state.cancel();
  }

  #end(): void {
    const { kind } = this.#state;
    this.#state = { kind: 'done' };
    if (kind === 'posting' || kind === 'waiting') this.#host.server.removeSubscription();
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state.kind === 'posting') this.#state.post.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state.kind === 'posting') this.#state.post.resume();
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
      case LISTEN_ACKNOWLEDGED:
        return this.#acknowledged(frame);
      case CANCELED:
        return this.#canceled(frame);
      case TOOLS_CHANGED:
        this.#host.tools.invalidate();
    }
    this.#notify(frame);
  }

  /**
   * Passes on a notification under the client's subscription id, whatever id the server used, since everything on this
   * stream belongs to this subscription.
   */
  #notify(frame: Frame): void {
    this.#host.notify(this, rewriteSubscriptionId(frame, idToken(this.frame)) ?? frame);
  }

  /**
   * Passes on the first acknowledgment. After a later one, the client gets notifications of all that may have changed
   * while the stream was broken.
   */
  #acknowledged(frame: Frame): void {
    this.#openedMs = this.#now;
    if (!this.#isAcknowledged) {
      this.#isAcknowledged = true;
      return this.#notify(frame);
    }
    this.#host.tools.invalidate();
    const { frame: request } = this;
    for (const change of missedChanges(request, frame, idToken(request))) this.#host.notify(this, change);
  }

  get #now(): number {
    return this.#host.server.environment.http.clock.now();
  }

  /**
   * Ends a subscription that the server has canceled. The client gets the result that all clients understand instead.
   */
  #canceled(frame: Frame): void {
    const state = this.#state;
    if (state.kind !== 'posting' || findCanceledId(frame)?.value !== state.id) return;
    state.post.abort();
    const { id } = this.frame;
    this.#answered(resultFrame(state.id, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } }));
  }

  #answered(answer: Frame): void {
    const token = idToken(this.frame);
    const restored = withId(answer, token);
    this.#end();
    this.#host.answered(this, rewriteSubscriptionId(restored, token) ?? restored);
  }

  answered({ message }: PostedCall, answer: Frame): void {
    this.#host.server.matched(answer, message.frame);
    this.#answered(answer);
  }

  /** The subscription has ended with its answer. The rest of the response is ignored. */
  lingers(): void {}

  over({ message }: PostedCall, end: PostEnd): void {
    switch (end.kind) {
      case 'done':
        return;
      case 'refused': {
        const { status, error } = end.refusal;
        const answer = answerIn(end.refusal, message.frame);
        if (answer !== undefined) return this.#answered(answer);
        // An expired token is renewed from outside, and its file is read again for each request.
        return isPassing(status) || status === 401 ? this.#broke(error) : this.#fail(error);
      }
      default:
        return this.#broke(failureOf(end, this.#host.server.environment.url, this.frame.method).error);
    }
  }

  #broke(error: BridgeError): void {
    if (!this.#isAcknowledged) return this.#fail(error);
    const { environment } = this.#host.server;
    if (this.#openedMs !== undefined) this.#pause.lived(this.#now - this.#openedMs);
    const delayMs = this.#pause.next(this.#host.server.random(), error.retryAfterMs);
    environment.log.debug({ code: error.code, delayMs }, `a subscription was interrupted: ${error.message}`);
    this.#state = { kind: 'waiting', cancel: environment.http.clock.after(delayMs, () => this.#post()) };
  }

  #fail(error: BridgeError): void {
    this.#end();
    this.#host.failed(this, error);
  }
}

const TOO_MANY_SUBSCRIPTIONS = new BridgeError(
  'ERR_SESSION_BUSY',
  'The server has as many subscriptions through this bridge as are allowed; close some.',
);

/**
 * Pause before a broken stream is opened again, doubled each time.
 * [spec 2026-07-28 basic/patterns/subscriptions#cancellation] allows this for a stream that ended unexpectedly.
 */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Longest pause that a server can ask for. */
const MAX_RETRY_AFTER_MS = 300_000;
/**
 * A stream that ended sooner than this does not reset the pause, because each new stream makes the client fetch
 * everything again.
 */
const SHORT_LIVED_MS = 10_000;

/** Computes the pause before a subscription is opened again. */
export class ListenPause {
  #pauseMs = FIRST_PAUSE_MS;

  /** Call this when a stream has ended, with the time it was open. */
  lived(ms: number): void {
    if (ms >= SHORT_LIVED_MS) this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** @param random from 0 to 1; it keeps clients that lost their streams together from reconnecting together */
  next(random: number, retryAfterMs = 0): number {
    const pauseMs = Math.max(this.#pauseMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
    return Math.round(pauseMs * (1 + random / 4));
  }
}
