import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, ClientMessage } from '../../relay/call.ts';
import type { LinkOwner, ServerProcess, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';

/** A connection that was found, or a dialer for one. Either `open` or `close` is called, once. */
export interface FoundLink {
  /**
   * Gives the connection to the client, which gets the messages that the server has sent so far. Throws a BridgeError
   * if a connection still has to be dialed and cannot be.
   */
  open(client: LinkOwner): UpstreamLink;
  /** Called if the client has left in the meantime. */
  close(reason: BridgeError): void;
}

/** Returns a way to a connection on which the client's first message still has to be sent. */
export function dialWith(dialer: Pick<SessionDialer, 'dial'>, { frame, call }: ClientMessage): FoundLink {
  return {
    open(client) {
      const link = dialer.dial(client);
      link.send(frame, call);
      return link;
    },
    close: () => {},
  };
}

/** Finds a link with the client's first message. Rejects with a BridgeError, or with the reason of the signal. */
export type FindLink = (first: ClientMessage, signal: AbortSignal) => Promise<FoundLink>;

/** Messages that a client may send before its server is found. At the limit its side is paused. */
export const MAX_HELD = 100;
/** Bytes that a client may send before its server is found. A message that exceeds the limit is still taken. */
export const MAX_HELD_BYTES = 1024 * 1024;

/**
 * The message that a server is found with.
 * - `initialize`: that of a session. Requests before it are refused, other messages wait. `findLink` sends it.
 * - `initialize-after`: the same, but a process is already started. All messages before `initialize` pass to it, and so
 *   do the client's answers to its questions afterward.
 * - `any`: a modern request, which waits like the messages after it.
 */
export type FirstMessage =
  | { readonly kind: 'initialize' }
  | { readonly kind: 'initialize-after'; readonly started: UpstreamLink }
  | { readonly kind: 'any' };

/**
 * A client over HTTP+SSE whose stream broke reconnects by itself and continues in a new session without a handshake.
 * Only `initialize` shows which transport the server speaks, so without this error the client would wait for ever.
 */
const NOT_INITIALIZED = new BridgeError(
  'ERR_SESSION_MISSING',
  'This session has not begun: the first request of a session has to be initialize. Connect again.',
);

/**
 * - `waiting`: no message has come that the server can be found with.
 * - `deciding`: such a message has come, and the server is being found.
 * - `over`: the owner has the link that was found, has closed this one, or has been notified of its end.
 */
type LinkState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'deciding'; readonly controller: AbortController }
  | { readonly kind: 'over' };

export interface DetectingLinkOptions {
  readonly owner: LinkOwner;
  readonly first: FirstMessage;
  readonly findLink: FindLink;
  /** Called once, when the link is over. */
  readonly left: () => void;
}

/**
 * The link of a session or call until its server is found with the client's first message. Other messages wait until
 * then.
 */
export class DetectingLink implements UpstreamLink {
  listener: LinkOwner;
  readonly #options: DetectingLinkOptions;
  readonly #held = new ByteQueue<ClientMessage>({ maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES }, frameBytes);
  /** True if the client's side was paused, so that `serverDrained` has to follow. */
  #owesDrain = false;
  #state: LinkState = { kind: 'waiting' };
  #isPaused = false;

  constructor(options: DetectingLinkOptions) {
    this.#options = options;
    this.listener = options.owner;
  }

  get process(): ServerProcess | undefined {
    return this.#started?.process;
  }

  get #started(): UpstreamLink | undefined {
    const { first } = this.#options;
    return first.kind === 'initialize-after' ? first.started : undefined;
  }

  // ---- from the relay

  send(frame: Frame, call?: Call): boolean {
    switch (this.#state.kind) {
      case 'over':
        return true;
      case 'waiting':
        return this.#options.first.kind === 'any' ? this.#any(frame, call) : this.#opening(frame, call);
      case 'deciding':
        // The server may need this answer before it answers `initialize`.
        if (frame.isResponse && this.#started !== undefined) return this.#started.send(frame, call);
        return this.#hold(frame, call);
    }
  }

  #any(frame: Frame, call: Call | undefined): boolean {
    const hasCapacity = this.#hold(frame, call);
    this.#begin({ frame, call });
    return hasCapacity;
  }

  #opening(frame: Frame, call: Call | undefined): boolean {
    if (frame.method === INITIALIZE) {
      this.#begin({ frame, call });
      return true;
    }
    if (this.#started !== undefined) return this.#started.send(frame, call);
    if (frame.kind !== 'request') return this.#hold(frame, call);
    this.listener.fromServer(errorFrame(frame.id as JsonRpcId, rpcErrorOf(NOT_INITIALIZED)), call);
    return true;
  }

  pause(): void {
    this.#isPaused = true;
    if (!this.#isOver) this.#started?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isOver) this.#started?.resume();
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    if (!this.#end()) return;
    if (state.kind === 'waiting') this.#started?.close(reason);
    if (state.kind === 'deciding') state.controller.abort(reason);
  }

  // ---- messages that wait

  /** Returns false if the client's side has to pause. */
  #hold(frame: Frame, call: Call | undefined): boolean {
    if (this.#withdraw(frame, call)) return true;
    this.#held.add({ frame, call });
    this.#owesDrain ||= this.#held.isFull;
    return !this.#owesDrain;
  }

  /**
   * Drops a waiting request together with its cancellation, which is about the same call. Returns false if there is no
   * such request.
   */
  #withdraw({ kind }: Frame, call: Call | undefined): boolean {
    if (kind !== 'notification' || call === undefined) return false;
    return this.#held.removeFirst((message) => message.call === call) !== undefined;
  }

  /** Sends the waiting messages. A client that is gone by now does no harm, because a closed link ignores messages. */
  #sendHeld(held: readonly ClientMessage[], link: UpstreamLink): void {
    let hasCapacity = true;
    for (const { frame, call } of held) hasCapacity = link.send(frame, call) && hasCapacity;
    // If there is no capacity, the link itself calls `serverDrained` later.
    if (this.#owesDrain && hasCapacity) this.listener.serverDrained();
  }

  // ---- the decision

  #begin(first: ClientMessage): void {
    const controller = new AbortController();
    this.#state = { kind: 'deciding', controller };
    void this.#decide(first, controller.signal);
  }

  async #decide(first: ClientMessage, signal: AbortSignal): Promise<void> {
    try {
      const found = await this.#options.findLink(first, signal);
      if (this.#isOver) found.close(CLIENT_LEFT);
      else this.#handOver(found);
    } catch (thrown) {
      if (this.#end()) this.listener.serverClosed(toBridgeError(thrown));
    }
  }

  #handOver(found: FoundLink): void {
    const { listener } = this;
    const link = found.open(listener);
    const held = this.#held.takeAll();
    // The messages of the server so far may have made the client leave.
    if (!this.#end()) return link.close(CLIENT_LEFT);
    listener.serverFound(link);
    if (this.#isPaused) link.pause();
    this.#sendHeld(held, link);
  }

  get #isOver(): boolean {
    return this.#state.kind === 'over';
  }

  /** Returns false if the link was over before. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#state = { kind: 'over' };
    this.#held.takeAll();
    this.#options.left();
    return true;
  }
}

/** The links of a dialer that were dialed before their server was found. */
export class DetectingLinks {
  readonly #links = new Set<DetectingLink>();

  /** Never throws. The owner gets each failure as the end of the link. */
  dial(owner: LinkOwner, first: FirstMessage, findLink: FindLink): UpstreamLink {
    const left = (): void => void this.#links.delete(link);
    const link = new DetectingLink({ owner, first, findLink, left });
    this.#links.add(link);
    return link;
  }

  close(reason: BridgeError): void {
    for (const link of [...this.#links]) link.close(reason);
  }
}

const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client has left.');
