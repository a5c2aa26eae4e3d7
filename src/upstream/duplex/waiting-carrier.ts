import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { Call, ClientMessage } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Carrier } from './carrier.ts';

/** Limits of the messages that wait. Clients send little before their first response. */
const WAITING_LIMITS = { maxItems: 100, maxBytes: 1024 * 1024 };

/** Keeps the messages for a carrier that cannot be opened yet. */
export class WaitingCarrier implements Carrier {
  readonly process = undefined;
  readonly #waiting = new ByteQueue<ClientMessage>(WAITING_LIMITS, frameBytes);
  readonly #closed: () => void;
  #isPaused = false;
  #isClosed = false;

  /** @param closed called when the connection closes the carrier before there is another one */
  constructor(closed: () => void) {
    this.#closed = closed;
  }

  get isFull(): boolean {
    return this.#waiting.isFull;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** A cancellation whose request still waits removes that request, and neither is sent. */
  send(frame: Frame, call: Call | undefined): boolean {
    const isCancellation = frame.kind === 'notification' && call !== undefined;
    if (isCancellation && this.#waiting.removeFirst((other) => other.call === call) !== undefined) return true;
    this.#waiting.add({ frame, call });
    return !this.#waiting.isFull;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  /** Passes everything to the carrier that has taken this one's place. Returns false if that is full now. */
  passTo(carrier: Carrier): boolean {
    if (this.#isPaused) carrier.pause();
    let hasCapacity = true;
    for (const { frame, call } of this.#waiting.takeAll()) hasCapacity = carrier.send(frame, call);
    return hasCapacity;
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting.takeAll();
    this.#closed();
  }
}
