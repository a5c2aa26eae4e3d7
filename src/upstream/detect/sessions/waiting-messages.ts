import { ByteQueue, frameBytes } from '../../../collections/byte-queue.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { UpstreamLink } from '../../../relay/ports.ts';
import type { Frame } from '../../../wire/frame.ts';
import type { Request } from '../found-link.ts';

/** Messages a client may send before its server is found; from there on it is asked to wait. */
export const MAX_HELD = 100;
/** Bytes a client may send before its server is found; a message that exceeds the limit is still taken. */
export const MAX_HELD_BYTES = 1024 * 1024;

/** What a client says while it is not known yet how to say it to the server. */
export class WaitingMessages {
  readonly #messages = new ByteQueue<Request>({ maxItems: MAX_HELD, maxBytes: MAX_HELD_BYTES }, frameBytes);
  #owesDrain = false;

  /** False: the client is to wait. */
  add(frame: Frame, exchange: Exchange | undefined): boolean {
    if (this.#withdraw(frame, exchange)) return true;
    this.#messages.add({ frame, exchange });
    this.#owesDrain ||= this.#messages.isFull;
    return !this.#owesDrain;
  }

  /** A cancellation comes with the exchange of what it cancels: neither has to leave then. */
  #withdraw({ kind }: Frame, exchange: Exchange | undefined): boolean {
    if (kind !== 'notification' || exchange === undefined) return false;
    return this.#messages.removeFirst((message) => message.exchange === exchange) !== undefined;
  }

  /**
   * Sends everything, even if the client is gone by now: a closed link swallows what it gets. True: the client was asked
   * to wait, and has to be told that there is capacity; if there is none, the link itself tells when there is.
   */
  sendTo(link: UpstreamLink): boolean {
    let hasCapacity = true;
    for (const { frame, exchange } of this.#messages.takeAll()) hasCapacity = link.send(frame, exchange) && hasCapacity;
    return this.#owesDrain && hasCapacity;
  }

  clear(): void {
    this.#messages.takeAll();
  }
}
