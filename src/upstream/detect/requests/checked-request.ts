import type { Exchange } from '../../../relay/exchange.ts';
import { PassingLink } from '../../../relay/passing-link.ts';
import type { ServerFault, ServerListener, UpstreamLink } from '../../../relay/ports.ts';
import type { Frame } from '../../../wire/frame.ts';
import type { Request } from '../found-link.ts';

export interface CheckedRequestOptions {
  readonly listener: ServerListener;
  /** Throws what `dial` throws. */
  readonly dial: (listener: ServerListener) => UpstreamLink;
  /** Requests that were just refused as no modern server does; see StatelessDialerOptions. */
  readonly doubted: WeakSet<Exchange>;
  /** Another link for the request, on which it will be sent. `refuse` instead tells the client what the server said. */
  readonly dialAgain: (refuse: Refuse) => UpstreamLink;
}

/** Says to a client what the server said before. */
export type Refuse = (client: ServerListener) => void;

/**
 * A modern request to a server that was modern the last time it was asked. A server that was replaced refuses it before
 * it does anything, so that it can be sent once more in another way.
 */
export class CheckedRequest extends PassingLink {
  protected link: UpstreamLink;
  readonly #options: CheckedRequestOptions;
  #request: Request | undefined;

  constructor(options: CheckedRequestOptions) {
    super(options.listener);
    this.#options = options;
    this.link = options.dial(this);
  }

  override send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.kind === 'request') this.#request = { frame, exchange };
    return this.link.send(frame, exchange);
  }

  override fromServer(frame: Frame, exchange?: Exchange): void {
    if (frame.kind === 'error' && this.#isDoubted()) {
      return this.#sendAgain((client) => client.fromServer(frame, exchange));
    }
    this.listener.fromServer(frame, exchange);
  }

  override serverFault(fault: ServerFault): void {
    if (this.#isDoubted()) return this.#sendAgain((client) => client.serverFault(fault));
    this.listener.serverFault(fault);
  }

  #isDoubted(): boolean {
    const exchange = this.#request?.exchange;
    return exchange !== undefined && this.#options.doubted.delete(exchange);
  }

  #sendAgain(refuse: Refuse): void {
    const { frame, exchange } = this.#request as Request;
    this.link = this.#options.dialAgain(refuse);
    this.link.send(frame, exchange);
  }
}
