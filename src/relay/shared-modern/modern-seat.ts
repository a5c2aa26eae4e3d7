import type { Place } from '../../collections/place-list.ts';
import type { BridgeError } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Exchange } from '../exchange.ts';
import type { ServerListener, UpstreamLink } from '../ports.ts';

/** What a seat needs of the server it is at. */
export interface ModernSeatHost {
  /** False: the server's pipe is full. */
  fromSeat(seat: ModernSeat, frame: Frame, exchange: Exchange | undefined): boolean;
  leave(seat: ModernSeat): void;
}

/** One conversation's or session's place at a shared modern server: to its relay a link like any other. */
export class ModernSeat implements UpstreamLink {
  /** Stands for it where it may be gone. */
  readonly mark = Symbol('seat');
  readonly listener: ServerListener;
  readonly #host: ModernSeatHost;
  /** Calls that the server is at work on. */
  openCalls = 0;
  /** Among those of its server; set while it sits there. */
  place: Place<ModernSeat> | undefined;
  #hasLeft = false;

  constructor(host: ModernSeatHost, listener: ServerListener) {
    this.#host = host;
    this.listener = listener;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.#hasLeft || this.#host.fromSeat(this, frame, exchange);
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
