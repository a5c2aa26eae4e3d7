import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { CANCELLED, INITIALIZED, PING } from '../../mcp/vocabulary/methods.ts';
import { Exchange, type Lane } from '../../relay/exchange.ts';
import { DecoratedDialer, DecoratedSessions, type DecorateSession, PassingLink } from '../../relay/passing-link.ts';
import type { LinkOwner, SessionDialer, UpstreamDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';

/** Pings without an answer after which the server counts as gone. */
export const MAX_MISSED_PINGS = 2;
/** Prefix of the ids of pings. No client's counter produces such an id. */
const ID_PREFIX = 'mcp-portage-ping-';

/**
 * Pings a server that has been silent for a while. Pings keep the connection open through proxies and routers, and show
 * if the other end has disappeared without closing it, such as a laptop that slept or a router that lost its state. The
 * modern era has no pings, and its requests are no sessions. [spec 2025-11-25 basic/utilities/ping]
 */
export function createPingingDialer(pinged: UpstreamDialer, options: PingOptions): UpstreamDialer {
  return new DecoratedDialer(pinged, pingWith(options));
}

/** Pings the servers of sessions that are shared or pooled. */
export function createPingingSessions(pinged: SessionDialer, options: PingOptions): SessionDialer {
  return new DecoratedSessions(pinged, pingWith(options));
}

export interface PingOptions {
  /** Silence after which a ping is sent, and also the time for its answer. */
  readonly idleMs: number;
  /** Silence allowed to a call. 0 means no limit. */
  readonly requestTimeoutMs: number;
  readonly deps: Deps;
}

/** Facts about one server that all links to it have found out. */
interface PingedServer {
  /**
   * True if the server has answered a ping. The silence of a server that never does so has another reason than its end.
   */
  answersPings: boolean;
  hasWarned: boolean;
}

function pingWith(options: PingOptions): DecorateSession {
  const server: PingedServer = { answersPings: false, hasWarned: false };
  return (dialer, listener, session) => {
    const dial = (own: LinkOwner): UpstreamLink => dialer.dial(own, session);
    const link = new PingingLink(dialer.name, listener, { ...options, server, dial });
    // The session is past its handshake.
    if (session?.isInitialized === true) link.watch();
    return link;
  };
}

/**
 * The share of its timeout that a call certainly waits for the server, since the request arrives there a little later.
 */
const SHARE_OF_TIMEOUT = 0.9;
/** Completes "did not answer 2 pings in a row …". */
const NOR_CALLS = ', nor the calls that waited meanwhile';
/** No client waits for the answer to a ping. */
const NO_LANE: Lane = { isOpen: false };

interface PingingLinkOptions extends PingOptions {
  readonly server: PingedServer;
  readonly dial: (listener: LinkOwner) => UpstreamLink;
}

class PingingLink extends PassingLink {
  protected link: UpstreamLink;
  readonly #name: string;
  readonly #deps: Deps;
  readonly #idleMs: number;
  readonly #requestTimeoutMs: number;
  readonly #server: PingedServer;
  #stop: (() => void) | undefined;
  #lastHeardMs: number;
  #pings = 0;
  /** The id of the ping that is not answered yet. */
  #open: string | undefined;
  #missed = 0;
  /** Time that calls have waited before they were given up, while nothing was heard from the server. */
  #unansweredMs = 0;
  #countedUntilMs = Number.NEGATIVE_INFINITY;
  /** True while the client does not keep up. The server is then not read, so its answer would not be seen. */
  #isPaused = false;

  constructor(name: string, listener: LinkOwner, { idleMs, requestTimeoutMs, deps, server, dial }: PingingLinkOptions) {
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
    // Before the handshake is done, the server expects no pings.
    if (frame.method === INITIALIZED) this.watch();
    if (frame.method === CANCELLED && exchange !== undefined) this.#givenUp(exchange);
    return super.send(frame, exchange);
  }

  /** Counts the time that a call has waited in vain. Time in which several calls waited counts once. */
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
   * True if the server counts as gone although it has never answered a ping. Such a server may still answer calls. It
   * is gone if calls were given up that together waited for as long as one call may be silent. See
   * docs/internals/decisions/0015-hung-servers.md.
   */
  get #hasAnsweredNoCall(): boolean {
    return this.#requestTimeoutMs > 0 && this.#unansweredMs >= SHARE_OF_TIMEOUT * this.#requestTimeoutMs;
  }

  /**
   * Logs that pings are not answered. The server may be gone, or answer calls but no pings, and is not restarted for
   * the latter.
   */
  #noteUnanswered(): void {
    if (this.#server.hasWarned) return;
    this.#server.hasWarned = true;
    const message = `${this.#name} has not answered any ping so far; its connections are kept until calls get no answer either. --keep-alive 0 sends no pings`;
    this.#deps.log.warn(message);
  }

  #giveUp(besides: string): void {
    const message = `${this.#name} did not answer ${MAX_MISSED_PINGS} pings in a row${besides}; its connection was given up.`;
    const reason = new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'ping' } });
    // The link below has not noticed the end, so it is logged here.
    this.#deps.log.warn({ code: reason.code }, message);
    this.link.close(reason);
    this.serverClosed(reason);
  }

  override fromServer(frame: Frame, exchange?: Exchange): void {
    this.#lastHeardMs = this.#deps.clock.now();
    this.#unansweredMs = 0;
    this.#missed = 0;
    const id = exchange?.id ?? frame.id;
    // An error is an answer too, and shows that the server is alive.
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
