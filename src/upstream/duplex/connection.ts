import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerFault, ServerListener, ServerProcess, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { type IdWarnings, LinkRequests } from '../answer-ids.ts';
import { AnswerLimit } from '../server-messages.ts';
import type { Carrier, CarrierListener } from './carrier.ts';

export interface DuplexConnectionOptions<C extends Carrier> {
  readonly listener: ServerListener;
  readonly idWarnings: IdWarnings;
  readonly log: Logger;
  /** Creates the carrier. The carrier does not call its listener before this function has returned. */
  readonly carry: (listener: CarrierListener) => C;
}

/**
 * A connection to a server on which messages of any kind go in both directions. After `close` the listener is not
 * called any more, not even with the end of the connection.
 */
export class DuplexConnection<C extends Carrier> implements UpstreamLink, CarrierListener {
  readonly carrier: C;
  readonly #listener: ServerListener;
  readonly #answers: AnswerLimit;
  readonly #requests: LinkRequests;
  /** True once the connection was closed, or its listener has been told of the end. */
  #isOver = false;

  /** Throws what `carry` throws. */
  constructor({ listener, idWarnings, log, carry }: DuplexConnectionOptions<C>) {
    this.#listener = listener;
    this.#answers = new AnswerLimit(log);
    const send = (frame: Frame, exchange: Exchange | undefined): void => void this.send(frame, exchange);
    this.#requests = new LinkRequests({ warnings: idWarnings, log, send });
    this.carrier = carry(this);
  }

  get process(): ServerProcess | undefined {
    return this.carrier.process;
  }

  // ---- from the relay

  send(frame: Frame, exchange?: Exchange): boolean {
    if (this.#isOver) return true;
    this.#requests.sent(frame);
    return !this.#answers.excludes(frame, this.carrier.isFull) && this.carrier.send(frame, exchange);
  }

  pause(): void {
    this.carrier.pause();
  }

  resume(): void {
    this.carrier.resume();
  }

  close(reason: BridgeError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.carrier.close(reason);
  }

  // ---- from the carrier

  received(frame: Frame): void {
    if (this.#isOver) return;
    const passed = this.#requests.received(frame, undefined);
    if (passed !== undefined) this.#listener.fromServer(passed);
  }

  faulted(fault: ServerFault): void {
    if (!this.#isOver) this.#listener.serverFault(this.#requests.failed(fault));
  }

  drained(): void {
    if (!this.#isOver) this.#listener.serverDrained();
  }

  ended(error: BridgeError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener.serverClosed(error);
  }
}
