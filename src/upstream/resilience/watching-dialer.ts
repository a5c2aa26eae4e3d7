import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { createLifeQuestion } from '../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { CANCELLED } from '../../mcp/vocabulary/methods.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { DecoratedSessions, PassingLink } from '../../relay/passing-link.ts';
import type { ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

export interface WatchOptions {
  /** Silence allowed to a call. */
  readonly requestTimeoutMs: number;
  /** The time from asking a silent server until it counts as hung. */
  readonly hangTimeoutMs: number;
  /** What the server speaks. */
  readonly era: Era;
  /** The name that the bridge gives itself when it asks. */
  readonly clientInfo: Implementation;
  readonly deps: Deps;
}

/** A call that timed out reached the server a moment after its time began. */
const SHARE_OF_TIMEOUT = 0.9;
/** A timer that is later shows that the bridge itself stood still, and with it perhaps the server. */
const LATE_MS = 1000;
/** No other request on a link has such an id. */
const ID_PREFIX = 'mcp-portage-alive-';

/**
 * Ends a process that hangs, for clients that share it: none of them could. When a call is given up (it timed out, or
 * its client did not want to wait any longer) and nothing at all has come from the process for as long as a call may be
 * silent, it is asked something. Whatever comes then, a message, an error, a byte on stderr, shows that it lives;
 * nothing, and it is gone for its clients as if it had exited, and its process is ended.
 * [spec 2025-11-25 basic/utilities/ping#behavior-requirements] without an answer the sender may consider the connection
 * stale and end it. See docs/internals/decisions/0015-hung-servers.md.
 */
export function createWatchingDialer(watched: SessionDialer, options: WatchOptions): SessionDialer {
  return new DecoratedSessions(watched, (dialer, listener) => new WatchedLink(dialer, listener, options));
}

/**
 * - `open`: whatever the server says is heard.
 * - `paused`: it is not read, so nothing of it would be seen.
 * - `closed`: nobody wants to know any more.
 */
type LinkState = 'open' | 'paused' | 'closed';

class WatchedLink extends PassingLink {
  protected readonly link: UpstreamLink;
  readonly #name: string;
  readonly #options: WatchOptions;
  /** When the first request was sent of those since the server was last heard of, which was then. */
  #waitingSinceMs = Number.NEGATIVE_INFINITY;
  #lastHeardThenMs: number | undefined;
  #questions = 0;
  /** Set while a question is open: clears its timer. */
  #cancelVerdict: (() => void) | undefined;
  #state: LinkState = 'open';

  constructor(dialer: SessionDialer, listener: ServerListener, options: WatchOptions) {
    super(listener);
    this.#name = dialer.name;
    this.#options = options;
    this.link = dialer.dial(this);
  }

  override send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request') this.#noteRequest();
    const hasCapacity = super.send(frame, exchange);
    if (frame.method === CANCELLED) this.#givenUp();
    return hasCapacity;
  }

  #noteRequest(): void {
    const lastHeardMs = this.link.process?.lastHeardMs;
    if (lastHeardMs === this.#lastHeardThenMs) return;
    this.#lastHeardThenMs = lastHeardMs;
    this.#waitingSinceMs = this.#options.deps.clock.now();
  }

  // ---- is it alive?

  #givenUp(): void {
    const lastHeardMs = this.link.process?.lastHeardMs;
    if (lastHeardMs === undefined || this.#state !== 'open' || this.#cancelVerdict !== undefined) return;
    const { requestTimeoutMs, deps } = this.#options;
    const silentMs = deps.clock.now() - Math.max(lastHeardMs, this.#waitingSinceMs);
    if (silentMs >= SHARE_OF_TIMEOUT * requestTimeoutMs) this.#ask(silentMs);
  }

  #ask(silentMs: number): void {
    const { era, clientInfo, deps } = this.#options;
    deps.log.info(`server "${this.#name}" has said nothing for ${seconds(silentMs)}; it is asked whether it lives`);
    this.#questions += 1;
    this.#awaitLife(deps.clock.now());
    this.link.send(createLifeQuestion({ era, id: `${ID_PREFIX}${this.#questions}`, clientInfo }));
  }

  #awaitLife(askedMs: number): void {
    const { hangTimeoutMs, deps } = this.#options;
    const dueMs = deps.clock.now() + hangTimeoutMs;
    this.#cancelVerdict = deps.clock.after(hangTimeoutMs, () => {
      this.#cancelVerdict = undefined;
      const lastHeardMs = this.link.process?.lastHeardMs;
      if (lastHeardMs === undefined || lastHeardMs >= askedMs) return;
      if (deps.clock.now() - dueMs >= LATE_MS) this.#awaitLife(askedMs);
      else this.#giveUp(lastHeardMs);
    });
  }

  #giveUp(lastHeardMs: number): void {
    const { clock, log } = this.#options.deps;
    const silentMs = clock.now() - Math.max(lastHeardMs, this.#waitingSinceMs);
    const message =
      `Server "${this.#name}" hangs: for ${seconds(silentMs)} it has said nothing while calls waited, ` +
      'nor when it was asked whether it lives; it was ended. ' +
      'Raise --request-timeout if it works that long without a word; --hang-timeout 0 lets it be.';
    const reason = new BridgeError('ERR_UPSTREAM_HUNG', message);
    log.warn({ code: reason.code }, message);
    this.link.close(reason);
    this.serverClosed(reason);
  }

  #dropQuestion(): void {
    this.#cancelVerdict?.();
    this.#cancelVerdict = undefined;
  }

  // ---- from the server

  override fromServer(frame: Frame, exchange?: Exchange): void {
    const isAsked = this.#cancelVerdict !== undefined;
    if (isAsked) this.#dropQuestion();
    // An error without id may be the answer, and nobody else's then.
    if (frame.isResponse && (frame.id === undefined ? isAsked : isOwn(frame.id))) return;
    super.fromServer(frame, exchange);
  }

  override serverClosed(reason: BridgeError): void {
    this.#become('closed');
    super.serverClosed(reason);
  }

  // ---- as a link

  override pause(): void {
    this.#become('paused');
    super.pause();
  }

  override resume(): void {
    this.#become('open');
    super.resume();
  }

  override close(reason: BridgeError): void {
    this.#become('closed');
    super.close(reason);
  }

  #become(state: LinkState): void {
    this.#dropQuestion();
    if (this.#state !== 'closed') this.#state = state;
  }
}

function isOwn(id: Frame['id']): boolean {
  return typeof id === 'string' && id.startsWith(ID_PREFIX);
}

function seconds(durationMs: number): string {
  return `${Math.ceil(durationMs / 1000)} s`;
}
