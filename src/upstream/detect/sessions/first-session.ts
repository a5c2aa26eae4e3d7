import type { Clock } from '../../../deps.ts';
import { type BridgeError, toBridgeError } from '../../../errors.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import { PassingLink } from '../../../relay/passing-link.ts';
import type { ServerListener, UpstreamDialer, UpstreamLink } from '../../../relay/ports.ts';
import type { Frame } from '../../../wire/frame.ts';
import { isModernServer } from '../ask/ask-modern.ts';
import { answers, outcomeOfResponse } from '../ask/http-outcome.ts';
import { LinkClient } from '../ask/link-client.ts';
import type { Request } from '../found-link.ts';
import { WaitingMessages } from './waiting-messages.ts';

export interface FirstSessionOptions {
  readonly processes: UpstreamDialer;
  readonly listener: ServerListener;
  readonly clientInfo: Implementation;
  readonly clock: Clock;
  readonly probeTimeoutMs: number;
  /** The server took the client's `initialize`. */
  readonly accepted: () => void;
  /** The server is modern. Gives the link on which the session goes on; the connection is the callee's. May throw. */
  readonly turnModern: (connection: LinkClient) => UpstreamLink;
}

/**
 * - `opening`: the server has not answered the client's `initialize`. Everything passes up to that, and answers do after
 *   it; what else a client says that does not wait for the answer would be said in the wrong era, so it waits.
 * - `asking`: it refused that, and is asked whether it is modern. What the client says waits.
 * - `open`: known; messages pass.
 * - `closed`: the relay has let go or has been told of the end.
 */
type SessionState =
  | { readonly kind: 'opening'; initialize: Request | undefined }
  | { readonly kind: 'asking'; readonly initialize: Request; readonly refusal: Frame }
  | { readonly kind: 'open' }
  | { readonly kind: 'closed' };

/**
 * The session of a legacy client with a server process of which nobody knows the era yet. It is talked to as if it were
 * legacy, with nothing asked before; only a server that refuses `initialize` is looked at.
 */
export class FirstSession extends PassingLink {
  protected link: UpstreamLink;
  readonly #options: FirstSessionOptions;
  readonly #connection: LinkClient;
  readonly #messages = new WaitingMessages();
  #state: SessionState = { kind: 'opening', initialize: undefined };
  #isPaused = false;

  /** Throws what `dial` throws. */
  constructor(options: FirstSessionOptions) {
    super(options.listener);
    this.#options = options;
    this.#connection = new LinkClient(options.processes, options.clock);
    this.link = this.#connection.handTo(this);
  }

  // ---- from the relay

  override send(frame: Frame, exchange?: Exchange): boolean {
    switch (this.#state.kind) {
      case 'opening':
        if (this.#state.initialize !== undefined && !frame.isResponse) return this.#messages.add(frame, exchange);
        if (frame.method === INITIALIZE) this.#state = { kind: 'opening', initialize: { frame, exchange } };
        return this.link.send(frame, exchange);
      case 'asking':
        return this.#messages.add(frame, exchange);
      default:
        return this.link.send(frame, exchange);
    }
  }

  override pause(): void {
    this.#isPaused = true;
    super.pause();
  }

  override resume(): void {
    this.#isPaused = false;
    super.resume();
  }

  override close(reason: BridgeError): void {
    const wasAsking = this.#state.kind === 'asking';
    this.#state = { kind: 'closed' };
    this.#messages.clear();
    if (wasAsking) this.#connection.close();
    else this.link.close(reason);
  }

  // ---- from the server

  override fromServer(frame: Frame, exchange?: Exchange): void {
    const state = this.#state;
    const initialize = state.kind === 'opening' ? state.initialize : undefined;
    if (initialize === undefined || !answers(frame, initialize.frame.id as string | number)) {
      return this.listener.fromServer(frame, exchange);
    }
    if (frame.kind === 'error') return this.#refused(initialize, frame);
    this.#state = { kind: 'open' };
    this.#connection.handTo(this.listener);
    this.#options.accepted();
    this.listener.fromServer(frame, exchange);
    this.#sendWaiting();
  }

  override serverClosed(reason: BridgeError): void {
    this.#giveBack();
    if (this.#isOver) return;
    this.#state = { kind: 'closed' };
    this.listener.serverClosed(reason);
  }

  // ---- after a refusal

  #refused(initialize: Request, refusal: Frame): void {
    this.#state = { kind: 'asking', initialize, refusal };
    const { clientInfo, probeTimeoutMs } = this.#options;
    const asking = { connection: this.#connection, clientInfo, probeTimeoutMs };
    void isModernServer(outcomeOfResponse(refusal, undefined), asking).then((isModern) => {
      if (this.#state.kind !== 'asking') return;
      if (isModern) this.#turnModern(initialize);
      else this.#giveBack();
    });
  }

  #turnModern(initialize: Request): void {
    // Whoever gets the process does not know that it was told to wait.
    this.link.resume();
    try {
      this.link = this.#options.turnModern(this.#connection);
    } catch (thrown) {
      this.#state = { kind: 'closed' };
      return this.listener.serverClosed(toBridgeError(thrown));
    }
    this.#state = { kind: 'open' };
    if (this.#isPaused) this.link.pause();
    this.link.send(initialize.frame, initialize.exchange);
    this.#sendWaiting();
  }

  /** It is no modern server either: its own words are the client's answer. */
  #giveBack(): void {
    if (this.#state.kind !== 'asking') return;
    const { refusal, initialize } = this.#state;
    this.#state = { kind: 'opening', initialize: undefined };
    this.listener.fromServer(refusal, initialize.exchange);
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    if (!this.#isOver && this.#messages.sendTo(this.link)) this.listener.serverDrained();
  }

  get #isOver(): boolean {
    return this.#state.kind === 'closed';
  }
}
