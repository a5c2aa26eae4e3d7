import { MAX_WAITING_BYTES, MAX_WAITING_MESSAGES } from '../remote/outbox.ts';
import type { Outgoing } from '../remote/outgoing.ts';

/** What was taken from the client and has not left yet: when that is much, the client is asked to stop. */
export class SendWindow {
  readonly #drained: () => void;
  #messages = 0;
  #bytes = 0;
  #isFull = false;

  /** `drained`: there is capacity again after it was full. */
  constructor(drained: () => void) {
    this.#drained = drained;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  add({ frame }: Outgoing): void {
    this.#messages += 1;
    this.#bytes += frame.bytes.length;
    this.#isFull ||= this.#messages >= MAX_WAITING_MESSAGES || this.#bytes >= MAX_WAITING_BYTES;
  }

  /** The message's bytes are gone, or it will not be sent. May be called twice. */
  left(message: Outgoing): void {
    if (!message.isWaiting) return;
    message.isWaiting = false;
    this.#messages -= 1;
    this.#bytes -= message.frame.bytes.length;
    if (!this.#isFull || this.#messages > MAX_WAITING_MESSAGES / 2 || this.#bytes > MAX_WAITING_BYTES / 2) return;
    this.#isFull = false;
    this.#drained();
  }
}
