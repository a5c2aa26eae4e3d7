import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { CANCELLED, INITIALIZED, PING } from '../../mcp/vocabulary/methods.ts';
import { Exchange, type Lane } from '../../relay/exchange.ts';
import { DecoratedDialer, DecoratedSessions, type DecorateSession, PassingLink } from '../../relay/passing-link.ts';
import type { ServerListener, SessionDialer, UpstreamDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';

/** Pings without an answer after which the server counts as gone. */
export const MAX_MISSED_PINGS = 2;
/** No client's counter produces such an id. */
const ID_PREFIX = 'mcp-portage-ping-';

/**
 * Pings a server that has been silent for a while: keeps the connection open through what sits in between, and notices
 * when the other end is gone without a word (a laptop that slept, a router that forgot).
 * The modern era has no pings, and its requests are no sessions. [spec 2025-11-25 basic/utilities/ping]
 */
export function createPingingDialer(pinged: UpstreamDialer, options: PingOptions): UpstreamDialer {
  return new DecoratedDialer(pinged, pingWith(options));
}

/** Pings the servers of sessions that are shared or pooled. */
export function createPingingSessions(pinged: SessionDialer, options: PingOptions): SessionDialer {
  return new DecoratedSessions(pinged, pingWith(options));
}

export interface PingOptions {
  /** Silence after which a ping is sent; also the time it has for its answer. */
  readonly idleMs: number;
  /** Silence allowed to a call; 0: no limit. */
  readonly requestTimeoutMs: number;
  readonly deps: Deps;
}

/** What the links to one server have found out of it together. */
interface PingedServer {
  /** It has answered a ping. One that never does is silent for another reason than being gone. */
  answersPings: boolean;
  hasWarned: boolean;
}

function pingWith(options: PingOptions): DecorateSession {
  const server: PingedServer = { answersPings: false, hasWarned: false };
  return (dialer, listener, session) => {
    const dial = (own: ServerListener): UpstreamLink => dialer.dial(own, session);
    const link = new PingingLink(dialer.name, listener, { ...options, server, dial });
    // It is past its handshake.
    if (session?.isInitialized === true) link.watch();
    return link;
  };
}

/** A call that timed out reached the server a moment after its time began. */
const SHARE_OF_TIMEOUT = 0.9;
/** Completes "did not answer 2 pings in a row …". */
const NOR_CALLS = ', nor the calls that waited meanwhile';
/** Nobody waits for the answer to a ping. */
const NO_LANE: Lane = { isOpen: false };

interface PingingLinkOptions extends PingOptions {
  readonly server: PingedServer;
  readonly dial: (listener: ServerListener) => UpstreamLink;
}

class PingingLink extends PassingLink {
  protected readonly link: UpstreamLink;
  readonly #name: string;
  readonly #deps: Deps;
  readonly #idleMs: number;
  readonly #requestTimeoutMs: number;
  readonly #server: PingedServer;
  #stop: (() => void) | undefined;
  #lastHeardMs: number;
  #pings = 0;
  /** The ping that is not answered yet. */
  #open: string | undefined;
  #missed = 0;
  /** The time that abandoned calls have waited while nothing was heard of the server. */
  #unansweredMs = 0;
  #countedUntilMs = Number.NEGATIVE_INFINITY;
  /** The client does not keep up, so the server is not read; an answer of it would not be seen. */
  #isPaused = false;

  constructor(
    name: string,
    listener: ServerListener,
    { idleMs, requestTimeoutMs, deps, server, dial }: PingingLinkOptions,
  ) {
    super(listener);
    this.#name = name;
    this.#idleMs = idleMs;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#deps = deps;
    this.#server = server;
    this.#lastHeardMs = deps.clock.now();
    this.link = dial(this);
  }

  override send(frame: Frame, exchange?: Exchange): boolean {
    // Before the handshake is done the server expects nothing else.
    if (frame.method === INITIALIZED) this.watch();
    if (frame.method === CANCELLED && exchange !== undefined) this.#givenUp(exchange);
    return super.send(frame, exchange);
  }

  /** Time in which several calls waited counts once. */
  #givenUp({ openedAtMs }: Exchange): void {
    const nowMs = this.#deps.clock.now();
    this.#unansweredMs += nowMs - Math.max(openedAtMs, this.#lastHeardMs, this.#countedUntilMs);
    this.#countedUntilMs = nowMs;
  }

  watch(): void {
    this.#stop ??= this.#deps.clock.every(this.#idleMs, () => this.#check());
  }

  #check(): void {
    if (this.#isPaused || this.#deps.clock.now() - this.#lastHeardMs < this.#idleMs) return;
    if (this.#open !== undefined) this.#missed += 1;
    if (this.#missed >= MAX_MISSED_PINGS) {
      if (this.#server.answersPings) return this.#giveUp('');
      if (this.#hasAnsweredNoCall) return this.#giveUp(NOR_CALLS);
    }
    if (this.#missed === MAX_MISSED_PINGS) this.#noteUnanswered();
    this.#pings += 1;
    this.#open = `${ID_PREFIX}${this.#pings}`;
    const ping = new Exchange(this.#open, PING, NO_LANE, undefined, this.#deps.clock.now());
    this.link.send(requestFrame(this.#open, PING), ping);
  }

  /**
   * A server that answers no ping may be one of those that answer calls all the same. Once calls were given up, and waited
   * together in vain for as long as one may be silent, it is gone. See docs/internals/decisions/0015-hung-servers.md.
   */
  get #hasAnsweredNoCall(): boolean {
    return this.#requestTimeoutMs > 0 && this.#unansweredMs >= SHARE_OF_TIMEOUT * this.#requestTimeoutMs;
  }

  /** It may be gone, or one of the servers that answer calls and no pings, which is not to be restarted for that. */
  #noteUnanswered(): void {
    if (this.#server.hasWarned) return;
    this.#server.hasWarned = true;
    const message = `${this.#name} has not answered any ping so far; its connections are kept until calls get no answer either. --keep-alive 0 sends no pings`;
    this.#deps.log.warn(message);
  }

  #giveUp(besides: string): void {
    const message = `${this.#name} did not answer ${MAX_MISSED_PINGS} pings in a row${besides}; its connection was given up.`;
    const reason = new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'ping' } });
    // The link itself has noticed nothing.
    this.#deps.log.warn({ code: reason.code }, message);
    this.link.close(reason);
    this.serverClosed(reason);
  }

  override fromServer(frame: Frame, exchange?: Exchange): void {
    this.#lastHeardMs = this.#deps.clock.now();
    this.#unansweredMs = 0;
    this.#missed = 0;
    const id = exchange?.id ?? frame.id;
    // An error is an answer, too: the server is there.
    if (frame.isResponse && typeof id === 'string' && id.startsWith(ID_PREFIX)) {
      if (id === this.#open) this.#open = undefined;
      this.#server.answersPings = true;
      return;
    }
    super.fromServer(frame, exchange);
  }

  override pause(): void {
    this.#isPaused = true;
    super.pause();
  }

  override resume(): void {
    this.#isPaused = false;
    this.#lastHeardMs = this.#deps.clock.now();
    super.resume();
  }

  override close(reason: BridgeError): void {
    this.#end();
    super.close(reason);
  }

  override serverClosed(reason: BridgeError): void {
    this.#end();
    super.serverClosed(reason);
  }

  #end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
