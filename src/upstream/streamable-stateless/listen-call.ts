import type { BridgeError } from '../../errors.ts';
import { findCancelledId, rewriteSubscriptionId } from '../../mcp/classify/correlators.ts';
import { missedChanges } from '../../mcp/translate/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { CANCELLED, LISTEN_ACKNOWLEDGED, TOOLS_CHANGED } from '../../mcp/vocabulary/methods.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { type Frame, idToken, type JsonRpcId, withId } from '../../wire/frame.ts';
import { resultFrame } from '../../wire/write-message.ts';
import { isPassing } from '../remote/refusal.ts';
import type { Call, StatelessCallHost } from './call-host.ts';
import { Post, type PostEnd, type PostHost } from './post.ts';
import { messageHeaders, postRequest, rewriteForPost } from './post-request.ts';

/**
 * - `idle`: not started.
 * - `posting`: asked for, or open.
 * - `waiting`: the stream broke and will be opened again.
 * - `done`: over.
 */
type ListenState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'posting'; readonly post: Post; readonly id: JsonRpcId }
  | { readonly kind: 'waiting'; readonly cancel: () => void }
  | { readonly kind: 'done' };

/**
 * A `subscriptions/listen`: to the client one stream for as long as it likes, to the server a new request each time the
 * connection breaks. [spec 2026-07-28 basic/patterns/subscriptions]
 */
export class ListenCall implements Call, PostHost {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
  isWaiting = true;
  readonly #host: StatelessCallHost;
  readonly #pause = new ListenPause();
  #state: ListenState = { kind: 'idle' };
  /** The client has had its acknowledgment; from then on a broken stream is not its concern. */
  #isAcknowledged = false;
  /** When the server agreed to the stream there is now; undefined: it has not. */
  #openedMs: number | undefined;

  constructor(host: StatelessCallHost, frame: Frame, exchange: Exchange | undefined) {
    this.#host = host;
    this.frame = frame;
    this.exchange = exchange;
  }

  start(): void {
    const { environment, isPaused } = this.#host;
    const { frame: original, exchange } = this;
    const id = this.#host.nextId();
    const { frame } = rewriteForPost(original, id);
    const request = postRequest(environment, {
      frame,
      headers: messageHeaders(original),
      forwarded: exchange?.lane.headers,
    });
    this.#openedMs = undefined;
    this.#state = { kind: 'posting', id, post: new Post({ environment, host: this, frame, request, isPaused }) };
  }

  abort(): void {
    const state = this.#state;
    this.#state = { kind: 'done' };
    if (state.kind === 'posting') state.post.abort();
    else if (state.kind === 'waiting') state.cancel();
  }

  pause(): void {
    if (this.#state.kind === 'posting') this.#state.post.pause();
  }

  resume(): void {
    if (this.#state.kind === 'posting') this.#state.post.resume();
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
      case LISTEN_ACKNOWLEDGED:
        return this.#acknowledged(frame);
      case CANCELLED:
        return this.#cancelled(frame);
      case TOOLS_CHANGED:
        this.#host.tools.invalidate();
    }
    this.#notify(frame);
  }

  /** Under the client's id, whatever the server wrote: what comes on this stream is of this subscription. */
  #notify(frame: Frame): void {
    this.#host.notify(this, rewriteSubscriptionId(frame, idToken(this.frame)) ?? frame);
  }

  /** The client is told once. What changed while nobody listened was never reported. */
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
    return this.#host.environment.http.clock.now();
  }

  /** Another way for a server to end a subscription; its client gets the one that all clients know. */
  #cancelled(frame: Frame): void {
    const state = this.#state;
    if (state.kind !== 'posting' || findCancelledId(frame)?.value !== state.id) return;
    state.post.abort();
    const { id } = this.frame;
    this.#answered(resultFrame(state.id, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } }));
  }

  #answered(answer: Frame): void {
    const token = idToken(this.frame);
    const restored = withId(answer, token);
    this.#state = { kind: 'done' };
    this.#host.answered(this, rewriteSubscriptionId(restored, token) ?? restored);
  }

  ended(end: PostEnd): void {
    switch (end.kind) {
      case 'answered':
        return this.#answered(end.frame);
      case 'refused': {
        const { status, error } = end.refusal;
        // A token that ran out is renewed by somebody: the file it is in is read again each time.
        return isPassing(status) || status === 401 ? this.#broke(error) : this.#fail(error);
      }
      case 'failed':
        return this.#broke(end.error);
      case 'accepted':
    }
  }

  #broke(error: BridgeError): void {
    if (!this.#isAcknowledged) return this.#fail(error);
    const { environment } = this.#host;
    if (this.#openedMs !== undefined) this.#pause.lived(this.#now - this.#openedMs);
    const delayMs = this.#pause.next(this.#host.random(), error.retryAfterMs);
    environment.log.debug({ code: error.code, delayMs }, `a subscription was interrupted: ${error.message}`);
    this.#state = { kind: 'waiting', cancel: environment.http.clock.after(delayMs, () => this.start()) };
  }

  #fail(error: BridgeError): void {
    this.#state = { kind: 'done' };
    this.#host.failed(this, error);
  }
}

/** [spec 2026-07-28 basic/patterns/subscriptions#cancellation] a stream that ends unasked may be opened again. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** A server that asks for more patience gets it, up to this. */
const MAX_RETRY_AFTER_MS = 300_000;
/** A stream that ended sooner than this was no success: each new one makes the client look at everything again. */
const SHORT_LIVED_MS = 10_000;

/** How long to wait before a subscription is opened again. */
export class ListenPause {
  #pauseMs = FIRST_PAUSE_MS;

  /** The stream had been open for so long. */
  lived(ms: number): void {
    if (ms >= SHORT_LIVED_MS) this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** `random`, from 0 to 1, keeps clients that lost their streams together from coming back together. */
  next(random: number, retryAfterMs = 0): number {
    const pauseMs = Math.max(this.#pauseMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
    return Math.round(pauseMs * (1 + random / 4));
  }
}
