import type { ListNode } from '../../collections/linked-list.ts';
import type { BridgeError } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Exchange } from '../exchange.ts';
import type { ServerListener, UpstreamLink } from '../ports.ts';

/** What a client link needs of the shared server. */
export interface ModernClientLinkHost {
  /** False: the server's pipe is full. */
  fromClient(client: ModernClientLink, frame: Frame, exchange: Exchange | undefined): boolean;
  leave(client: ModernClientLink): void;
}

/** The link of one conversation or session to a shared modern server: to its relay a link like any other. */
export class ModernClientLink implements UpstreamLink {
  /** Identifies this link without keeping it in memory once it is closed. */
  readonly mark = Symbol('client');
  readonly listener: ServerListener;
  readonly #host: ModernClientLinkHost;
  /** Calls that the server is at work on. */
  openCalls = 0;
  /** Its node in the server's list of links; undefined once it was closed. */
  node: ListNode<ModernClientLink> | undefined;
  #hasLeft = false;

  constructor(host: ModernClientLinkHost, listener: ServerListener) {
    this.#host = host;
    this.listener = listener;
  }

  /** The server's process serves other clients as well. */
  get process(): undefined {
    return undefined;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#hasLeft || this.#host.fromClient(this, frame, exchange);
  }

  /** Nothing: stopping the server would stop it for everybody; what a slow client has not read is bounded elsewhere. */
  pause(): void {}
  resume(): void {}

  close(_reason: BridgeError): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#host.leave(this);
  }
}
