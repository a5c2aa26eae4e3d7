import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { createLifeQuestion } from '../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { CANCELLED } from '../../mcp/vocabulary/methods.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { DecoratedSessions, PassingLink } from '../../relay/passing-link.ts';
import type { LinkOwner, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

export interface WatchOptions {
  /** Silence allowed to a call. */
  readonly requestTimeoutMs: number;
  /** Time for a sign of life after a silent server was asked. Then it counts as hung. */
  readonly hangTimeoutMs: number;
  /** The era of the server. */
  readonly era: Era;
  /** The bridge's description of itself, for its questions. */
  readonly clientInfo: Implementation;
  readonly deps: Deps;
}

/**
 * The share of its timeout that a call certainly waits for the server, since the request arrives there a little later.
 */
const SHARE_OF_TIMEOUT = 0.9;
/** A timer that is this late shows that the bridge itself stood still, and perhaps the server with it. */
const LATE_MS = 1000;
/** Prefix of the ids of these questions. No other request on a link has such an id. */
const ID_PREFIX = 'mcp-portage-alive-';

/**
 * Ends a process that hangs, because the clients that share it cannot. A call is given up when it times out or its
 * client withdraws it. If nothing has come from the process by then for as long as a call may be silent, the process is
 * asked a question. Any output shows that it is alive: a message, an error, a byte on stderr. Without any, the process
 * is ended, and its clients are treated as if it had exited. See docs/internals/decisions/0015-hung-servers.md. Without
 * an answer to a ping, the sender may consider the connection stale and end it.
 * [spec 2025-11-25 basic/utilities/ping#behavior-requirements]
 */
export function createWatchingDialer(watched: SessionDialer, options: WatchOptions): SessionDialer {
  return new DecoratedSessions(watched, (dialer, listener) => new WatchedLink(dialer, listener, options));
}

/**
 * - `open`: the server is read.
 * - `paused`: the server is not read, so a sign of life would not be seen.
 * - `closed`: the link has ended.
 */
type LinkState = 'open' | 'paused' | 'closed';

class WatchedLink extends PassingLink {
  protected link: UpstreamLink;
  readonly #name: string;
  readonly #options: WatchOptions;
  /**
   * Time of the first request since the process was last heard from, and the value of `lastHeardMs` at that request.
   */
  #waitingSinceMs = Number.NEGATIVE_INFINITY;
  #lastHeardThenMs: number | undefined;
  #questions = 0;
  /** Cancels the timer of the open question. Undefined if no question is open. */
  #cancelVerdict: (() => void) | undefined;
  #state: LinkState = 'open';

  constructor(dialer: SessionDialer, listener: LinkOwner, options: WatchOptions) {
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

  // ---- the question

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
    // An error without an id may answer the bridge's question, and is then for no client.
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
