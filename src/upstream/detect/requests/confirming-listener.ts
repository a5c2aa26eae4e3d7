import type { BridgeError } from '../../../errors.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { ServerFault, ServerListener } from '../../../relay/ports.ts';
import type { Frame } from '../../../wire/frame.ts';

/** Who wants to know whether an assumption about a server holds. */
export interface Assumption {
  confirm(): void;
  refute(): void;
}

/** Watches for the first answer of a server that is spoken to on an assumption. */
export class ConfirmingListener implements ServerListener {
  readonly #listener: ServerListener;
  #assumption: Assumption | undefined;

  constructor(listener: ServerListener, assumption: Assumption) {
    this.#listener = listener;
    this.#assumption = assumption;
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (frame.isResponse) this.#settle(frame.kind === 'result');
    this.#listener.fromServer(frame, exchange);
  }

  serverFault(fault: ServerFault): void {
    this.#settle(false);
    this.#listener.serverFault(fault);
  }

  serverDrained(): void {
    this.#listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.#settle(false);
    this.#listener.serverClosed(reason);
  }

  #settle(holds: boolean): void {
    const assumption = this.#assumption;
    this.#assumption = undefined;
    if (holds) assumption?.confirm();
    else assumption?.refute();
  }
}
