import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener, ServerProcess, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';

/** A client's request with the exchange it came by. */
export interface Request {
  readonly frame: Frame;
  readonly exchange: Exchange | undefined;
}

/** A connection, or a way to one. One of the two is called, once. */
export interface FoundLink {
  /** Gives it to the client, which hears what the server may have said so far. Throws a BridgeError when it is gone. */
  open(client: ServerListener): UpstreamLink;
  /** The client has left meanwhile. */
  close(reason: BridgeError): void;
}

/** A way by which the client's first message has not been sent yet. */
export function dialWith(dialer: Pick<SessionDialer, 'dial'>, { frame, exchange }: Request): FoundLink {
  return {
    open(client) {
      const link = dialer.dial(client);
      link.send(frame, exchange);
      return link;
    },
    close: () => {},
  };
}

/** Finds a link with the client's first message. Rejects with a BridgeError, or with the reason of the signal. */
export type FindLink = (first: Request, signal: AbortSignal) => Promise<FoundLink>;

/** Messages a client may send before its server is found; from there on it is asked to wait. */
export const MAX_HELD = 100;
/** Bytes a client may send before its server is found; a message that exceeds the limit is still taken. */
export const MAX_HELD_BYTES = 1024 * 1024;

/**
 * What the client's first message is.
 * - `initialize`: that of a session. What comes before it is refused or waits, and finding the link sends it.
 * - `initialize-after`: so it is, but a process has been started already, to which everything up to it passes, and answers
 *   to what that may ask meanwhile.
 * - `any`: a modern request, which waits like the others.
 */
export type FirstMessage =
  | { readonly kind: 'initialize' }
  | { readonly kind: 'initialize-after'; readonly started: UpstreamLink }
  | { readonly kind: 'any' };

/**
 * A client over HTTP+SSE whose stream broke comes back by itself and goes on in a new session without a handshake. It
 * would wait for ever, for only `initialize` shows which transport the server speaks.
 */
const NOT_INITIALIZED = new BridgeError(
  'ERR_SESSION_MISSING',
  'This session has not begun: the first request of a session has to be initialize. Connect again.',
);

/**
 * - `waiting`: the client has not said what the server can be found with.
 * - `deciding`: it has, and the server is being found.
 * - `open`: found; messages pass.
 * - `closed`: the relay has let go or has been told of the end.
 */
type LinkState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'deciding'; readonly controller: AbortController }
  | { readonly kind: 'open'; readonly link: UpstreamLink }
  | { readonly kind: 'closed' };

export interface DetectingLinkOptions {
  readonly listener: ServerListener;
  readonly first: FirstMessage;
  readonly findLink: FindLink;
  /** Called once, when nothing more goes through this link. */
  readonly left: () => void;
}

/** A link to a server that is found out with the client's first message; the others wait for that. */
export class DetectingLink implements UpstreamLink {
  readonly #options: DetectingLinkOptions;
  readonly #held = new ByteQueue<Request>({ maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES }, frameBytes);
  /** The client has been asked to wait. */
  #owesDrain = false;
  #state: LinkState = { kind: 'waiting' };
  #isPaused = false;
  /** What was found; it outlasts the `open` state, for its process may be on its way out. */
  #found: UpstreamLink | undefined;

  constructor(options: DetectingLinkOptions) {
    this.#options = options;
  }

  get process(): ServerProcess | undefined {
    return (this.#found ?? this.#started)?.process;
  }

  get #started(): UpstreamLink | undefined {
    const { first } = this.#options;
    return first.kind === 'initialize-after' ? first.started : undefined;
  }

  // ---- from the relay

  send(frame: Frame, exchange?: Exchange): boolean {
    switch (this.#state.kind) {
      case 'open':
        return this.#state.link.send(frame, exchange);
      case 'closed':
        return true;
      case 'waiting':
        return this.#options.first.kind === 'any' ? this.#any(frame, exchange) : this.#opening(frame, exchange);
      case 'deciding':
        // The server may wait for it before it answers.
        if (frame.isResponse && this.#started !== undefined) return this.#started.send(frame, exchange);
        return this.#hold(frame, exchange);
    }
  }

  #any(frame: Frame, exchange: Exchange | undefined): boolean {
    const hasCapacity = this.#hold(frame, exchange);
    this.#begin({ frame, exchange });
    return hasCapacity;
  }

  #opening(frame: Frame, exchange: Exchange | undefined): boolean {
    if (frame.method === INITIALIZE) {
      this.#begin({ frame, exchange });
      return true;
    }
    if (this.#started !== undefined) return this.#started.send(frame, exchange);
    if (frame.kind !== 'request') return this.#hold(frame, exchange);
    this.#options.listener.fromServer(errorFrame(frame.id as JsonRpcId, rpcErrorOf(NOT_INITIALIZED)), exchange);
    return true;
  }

  pause(): void {
    this.#isPaused = true;
    this.#joined?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#joined?.resume();
  }

  /** What talks to the client now. */
  get #joined(): UpstreamLink | undefined {
    if (this.#state.kind === 'open') return this.#state.link;
    return this.#state.kind === 'closed' ? undefined : this.#started;
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    if (!this.#leave()) return;
    if (state.kind === 'waiting') this.#started?.close(reason);
    if (state.kind === 'deciding') state.controller.abort(reason);
    if (state.kind === 'open') state.link.close(reason);
  }

  // ---- messages that wait

  /** False: the client is to wait. */
  #hold(frame: Frame, exchange: Exchange | undefined): boolean {
    if (this.#withdraw(frame, exchange)) return true;
    this.#held.add({ frame, exchange });
    this.#owesDrain ||= this.#held.isFull;
    return !this.#owesDrain;
  }

  /** A cancellation comes with the exchange of what it cancels: neither has to leave then. */
  #withdraw({ kind }: Frame, exchange: Exchange | undefined): boolean {
    if (kind !== 'notification' || exchange === undefined) return false;
    return this.#held.removeFirst((message) => message.exchange === exchange) !== undefined;
  }

  /** Even if the client is gone by now: a closed link swallows what it gets. */
  #sendHeld(link: UpstreamLink): void {
    let hasCapacity = true;
    for (const { frame, exchange } of this.#held.takeAll()) hasCapacity = link.send(frame, exchange) && hasCapacity;
    // If it has none, the link itself tells when it has.
    if (this.#owesDrain && hasCapacity) this.#options.listener.serverDrained();
  }

  // ---- the decision

  #begin(first: Request): void {
    const controller = new AbortController();
    this.#state = { kind: 'deciding', controller };
    void this.#decide(first, controller.signal);
  }

  async #decide(first: Request, signal: AbortSignal): Promise<void> {
    try {
      const found = await this.#options.findLink(first, signal);
      if (this.#isClosed) found.close(CLIENT_LEFT);
      else this.#open(found);
    } catch (thrown) {
      if (this.#leave()) this.#options.listener.serverClosed(toBridgeError(thrown));
    }
  }

  get #isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  #open(found: FoundLink): void {
    const link = found.open(this.#options.listener);
    this.#found = link;
    // What the server has said so far may have made the client leave.
    if (this.#isClosed) return link.close(CLIENT_LEFT);
    this.#state = { kind: 'open', link };
    if (this.#isPaused) link.pause();
    this.#sendHeld(link);
  }

  /** False when it had been left before. */
  #leave(): boolean {
    if (this.#isClosed) return false;
    this.#state = { kind: 'closed' };
    this.#held.takeAll();
    this.#options.left();
    return true;
  }
}

/** The links of a dialer whose servers are being found, or through which that went. */
export class DetectingLinks {
  readonly #links = new Set<DetectingLink>();

  /** Throws nothing: what goes wrong the listener is told. */
  dial(listener: ServerListener, first: FirstMessage, findLink: FindLink): UpstreamLink {
    const left = (): void => void this.#links.delete(link);
    const link = new DetectingLink({ listener, first, findLink, left });
    this.#links.add(link);
    return link;
  }

  close(reason: BridgeError): void {
    for (const link of [...this.#links]) link.close(reason);
  }
}

const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client has left.');
