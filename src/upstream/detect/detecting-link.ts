import { BridgeError, toBridgeError } from '../../errors.ts';
import { INITIALIZE } from '../../mcp/methods.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Request, Trial } from './trial.ts';

/** Messages a client may send before its server is found; from there on it is asked to wait. */
export const MAX_HELD = 100;

/**
 * A client over HTTP+SSE whose stream broke comes back by itself and goes on in a new session without a handshake. It
 * would wait for ever, for only `initialize` shows which transport the server speaks.
 */
const NOT_INITIALIZED = new BridgeError(
  'ERR_SESSION_MISSING',
  'This session has not begun: the first request of a session has to be initialize. Connect again.',
);

/**
 * - `waiting`: the client has not sent `initialize`.
 * - `deciding`: it has, and the server is being found.
 * - `open`: found; messages pass.
 * - `closed`: the relay has let go or has been told of the end.
 */
type LinkState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'deciding'; readonly controller: AbortController }
  | { readonly kind: 'open'; readonly link: UpstreamLink }
  | { readonly kind: 'closed' };

/**
 * Finds a link for the client's `initialize`: one over which it has been answered. Rejects with a BridgeError, or with
 * the reason of the signal.
 */
export type FindLink = (initialize: Request, signal: AbortSignal) => Promise<Trial>;

/** A link to a server whose transport is found out with the client's first message; the others wait for that. */
export class DetectingLink implements UpstreamLink {
  readonly #listener: ServerListener;
  readonly #findLink: FindLink;
  readonly #left: () => void;
  #state: LinkState = { kind: 'waiting' };
  #held: Request[] = [];
  #owesRoom = false;
  #isPaused = false;

  /** @param left called once, when nothing more goes through this link */
  constructor(listener: ServerListener, findLink: FindLink, left: () => void) {
    this.#listener = listener;
    this.#findLink = findLink;
    this.#left = left;
  }

  // ---- from the relay

  send(frame: Frame, exchange?: Exchange): boolean {
    if (this.#state.kind === 'open') return this.#state.link.send(frame, exchange);
    if (this.#state.kind === 'closed') return true;
    if (frame.method === INITIALIZE && this.#state.kind === 'waiting') {
      const controller = new AbortController();
      this.#state = { kind: 'deciding', controller };
      void this.#decide({ frame, exchange }, controller.signal);
      return true;
    }
    if (this.#state.kind === 'waiting' && frame.kind === 'request') {
      this.#listener.fromServer(errorFrame(frame.id as JsonRpcId, rpcErrorOf(NOT_INITIALIZED)), exchange);
      return true;
    }
    if (this.#withdraw(frame, exchange)) return true;
    this.#held.push({ frame, exchange });
    this.#owesRoom ||= this.#held.length >= MAX_HELD;
    return !this.#owesRoom;
  }

  /** A cancellation comes with the exchange of what it cancels: neither has to leave then. */
  #withdraw({ kind }: Frame, exchange: Exchange | undefined): boolean {
    if (kind !== 'notification' || exchange === undefined) return false;
    const index = this.#held.findIndex((held) => held.exchange === exchange);
    if (index >= 0) this.#held.splice(index, 1);
    return index >= 0;
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

  async #decide(initialize: Request, signal: AbortSignal): Promise<void> {
    try {
      const trial = await this.#findLink(initialize, signal);
      if (this.#state.kind === 'deciding') this.#open(trial);
      else trial.link.close(new BridgeError('ERR_SESSION_CLOSED', 'The client has left.'));
    } catch (thrown) {
      if (this.#leave()) this.#listener.serverClosed(toBridgeError(thrown));
    }
  }

  #open(trial: Trial): void {
    const { link } = trial;
    this.#state = { kind: 'open', link };
    trial.handTo(this.#listener);
    if (this.#isPaused) link.pause();
    const held = this.#held;
    this.#held = [];
    let hasRoom = true;
    // Even if the client is gone by now: a closed link swallows what it gets.
    for (const { frame, exchange } of held) hasRoom = link.send(frame, exchange) && hasRoom;
    // Else the link itself tells when it has.
    if (this.#owesRoom && hasRoom) this.#listener.serverDrained();
  }

  /** False when it had been left before. */
  #leave(): boolean {
    if (this.#state.kind === 'closed') return false;
    this.#state = { kind: 'closed' };
    this.#held = [];
    this.#left();
    return true;
  }
}
