import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import type { Call } from '../../relay/call.ts';
import type { ServerFault, ServerProcess } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { type IdWarnings, LinkRequests } from '../answer-ids.ts';
import { Connection } from '../connection.ts';
import { AnswerLimit } from '../server-messages.ts';
import type { Carrier, CarrierListener } from './carrier.ts';

export interface DuplexConnectionOptions<C extends Carrier> {
  readonly idWarnings: IdWarnings;
  readonly log: Logger;
  /** Creates the carrier. The carrier does not call its listener before this function has returned. */
  readonly carry: (listener: CarrierListener) => C;
}

/** A connection to a server on which messages of any kind go in both directions. */
export class DuplexConnection<C extends Carrier> extends Connection implements CarrierListener {
  #carrier: C;
  readonly #answers: AnswerLimit;
  readonly #requests: LinkRequests;
  /** True once the connection was closed or has ended. */
  #isOver = false;

  /** Throws what `carry` throws. */
  constructor({ idWarnings, log, carry }: DuplexConnectionOptions<C>) {
    super();
    this.#answers = new AnswerLimit(log);
    const send = (frame: Frame, call: Call | undefined): void => void this.write(frame, call);
    this.#requests = new LinkRequests({ warnings: idWarnings, log, send });
    this.#carrier = carry(this);
  }

  get carrier(): C {
    return this.#carrier;
  }

  /** Continues with another carrier, in place of one that only kept messages. Throws what `carry` throws. */
  replaceCarrier(carry: (listener: CarrierListener) => C): void {
    this.#carrier = carry(this);
  }

  get process(): ServerProcess | undefined {
    return this.#carrier.process;
  }

  // ---- from the owner

  protected override write(frame: Frame, call: Call | undefined): boolean {
    if (this.#isOver) return true;
    this.#requests.sent(frame);
    return !this.#answers.excludes(frame, this.#carrier.isFull) && this.#carrier.send(frame, call);
  }

  protected override pauseSource(): void {
    this.#carrier.pause();
  }

  protected override resumeSource(): void {
    this.#carrier.resume();
  }

  protected override end(reason: BridgeError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#carrier.close(reason);
  }

  // ---- from the carrier

  received(frame: Frame): void {
    if (this.#isOver) return;
    const passed = this.#requests.received(frame, undefined);
    if (passed !== undefined) this.fromServer(passed);
  }

  faulted(fault: ServerFault): void {
    if (!this.#isOver) this.serverFault(this.#requests.failed(fault));
  }

  drained(): void {
    if (!this.#isOver) this.serverDrained();
  }

  replaced(answer: Frame): void {
    if (!this.#isOver) this.serverReplaced(answer);
  }

  ended(error: BridgeError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.serverClosed(error);
  }
}
