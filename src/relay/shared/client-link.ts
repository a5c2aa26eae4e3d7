import type { ListNode } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Exchange } from '../exchange.ts';
import type { ServerListener, UpstreamLink } from '../ports.ts';

/** What a client link needs of the shared server. */
export interface ClientLinkHost<State> {
  /** False: the server's pipe is full. */
  fromClient(client: ClientLink<State>, frame: Frame, exchange: Exchange | undefined): boolean;
  leave(client: ClientLink<State>): void;
}

/** One client's link to a shared server: to its relay a link like any other. */
export class ClientLink<State> implements UpstreamLink {
  readonly listener: ServerListener;
  /** What the era of the server keeps of this client. */
  readonly state: State;
  readonly #host: ClientLinkHost<State>;
  /** Calls of this client that the server is at work on. */
  openCalls = 0;
  /** Its node in the server's list of links; undefined once it was closed. */
  node: ListNode<ClientLink<State>> | undefined;
  #hasLeft = false;

  constructor(host: ClientLinkHost<State>, listener: ServerListener, state: State) {
    this.#host = host;
    this.listener = listener;
    this.state = state;
  }

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#hasLeft || this.#host.fromClient(this, frame, exchange);
  }

  /**
   * Nothing: stopping the server would stop it for everybody. What a slow client has not read is bounded by its
   * transport, which also holds back that client's own messages meanwhile.
   */
  pause(): void {}
  resume(): void {}

  close(_reason: BridgeError): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#host.leave(this);
  }
}
