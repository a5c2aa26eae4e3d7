import type { BridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';

/** A message on its way to a server. */
export class Outgoing {
  readonly frame: Frame;
  /** The client's call it belongs to, if any. */
  readonly exchange: Exchange | undefined;
  /** Set on requests of the bridge's own: who takes the answer, or what came instead of one. Called once. */
  readonly reply: ((answer: Frame | BridgeError) => void) | undefined;
  /** How often it has been posted. */
  attempts = 0;
  /** Its bytes have not all been handed to the system. */
  isWaiting = true;

  constructor(frame: Frame, exchange?: Exchange, reply?: (answer: Frame | BridgeError) => void) {
    this.frame = frame;
    this.exchange = exchange;
    this.reply = reply;
  }
}
