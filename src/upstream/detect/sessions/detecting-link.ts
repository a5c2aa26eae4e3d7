import { BridgeError, toBridgeError } from '../../../errors.ts';
import { INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { ServerListener, ServerProcess, UpstreamLink } from '../../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { errorFrame } from '../../../wire/write-message.ts';
import type { FindLink, FoundLink, Request } from '../found-link.ts';
import { WaitingMessages } from './waiting-messages.ts';

/**
 * A client over HTTP+SSE whose stream broke comes back by itself and goes on in a new session without a handshake. It
 * would wait for ever, for only `initialize` shows which transport the server speaks.
 */
const NOT_INITIALIZED = new BridgeError(
  'ERR_SESSION_MISSING',
  'This session has not begun: the first request of a session has to be initialize. Connect again.',
);

/**
 * - `waiting`: the client has not said what shows the way.
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
  /**
   * `initialize`: a legacy session; what comes before is refused or waits. Finding the link sends it to the server.
   * `any`: modern requests; the first of them waits like the others.
   */
  readonly first: 'initialize' | 'any';
  readonly findLink: FindLink;
  /** Called once, when nothing more goes through this link. */
  readonly left: () => void;
}

/** A link to a server that is found out with the client's first message; the others wait for that. */
export class DetectingLink implements UpstreamLink {
  readonly #options: DetectingLinkOptions;
  readonly #messages = new WaitingMessages();
  #state: LinkState = { kind: 'waiting' };
  #isPaused = false;
  /** What was found; it outlasts the `open` state, for its process may be on its way out. */
  #found: UpstreamLink | undefined;

  constructor(options: DetectingLinkOptions) {
    this.#options = options;
  }

  get process(): ServerProcess | undefined {
    return this.#found?.process;
  }

  // ---- from the relay

  send(frame: Frame, exchange?: Exchange): boolean {
    switch (this.#state.kind) {
      case 'open':
        return this.#state.link.send(frame, exchange);
      case 'closed':
        return true;
      case 'waiting':
        return this.#options.first === 'any' ? this.#any(frame, exchange) : this.#opening(frame, exchange);
      default:
        return this.#messages.add(frame, exchange);
    }
  }

  #any(frame: Frame, exchange: Exchange | undefined): boolean {
    const hasCapacity = this.#messages.add(frame, exchange);
    this.#begin({ frame, exchange });
    return hasCapacity;
  }

  #opening(frame: Frame, exchange: Exchange | undefined): boolean {
    if (frame.method === INITIALIZE) {
      this.#begin({ frame, exchange });
      return true;
    }
    if (frame.kind !== 'request') return this.#messages.add(frame, exchange);
    this.#options.listener.fromServer(errorFrame(frame.id as JsonRpcId, rpcErrorOf(NOT_INITIALIZED)), exchange);
    return true;
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state.kind === 'open') this.#state.link.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state.kind === 'open') this.#state.link.resume();
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    if (!this.#leave()) return;
    if (state.kind === 'deciding') state.controller.abort(reason);
    if (state.kind === 'open') state.link.close(reason);
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
      if (this.#isClosed) found.drop(CLIENT_LEFT);
      else this.#open(found);
    } catch (thrown) {
      if (this.#leave()) this.#options.listener.serverClosed(toBridgeError(thrown));
    }
  }

  get #isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  #open(found: FoundLink): void {
    const { listener } = this.#options;
    const link = found.open(listener);
    this.#found = link;
    // What the server has said so far may have made the client leave.
    if (this.#isClosed) return link.close(CLIENT_LEFT);
    this.#state = { kind: 'open', link };
    if (this.#isPaused) link.pause();
    if (this.#messages.sendTo(link)) listener.serverDrained();
  }

  /** False when it had been left before. */
  #leave(): boolean {
    if (this.#isClosed) return false;
    this.#state = { kind: 'closed' };
    this.#messages.clear();
    this.#options.left();
    return true;
  }
}

const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client has left.');
