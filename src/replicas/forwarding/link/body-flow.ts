import type { LinkConnection, WaitingBody } from './connection.ts';
import { encodeWindow, MAX_PAYLOAD_BYTES, markLast } from './frames.ts';

/**
 * Bytes of one body that may be in flight or unread at the other end. The unread bytes of each stream are in memory
 * there: half a gigabyte if all 4096 streams are unread. The size corresponds to two round trips at full speed in one
 * data center.
 */
export const WINDOW_BYTES = 128 * 1024;

const NOTHING = Buffer.alloc(0);

/** Sends one body, limited by the other end's window and by the capacity of the connection. */
export class BodyOutput implements WaitingBody {
  readonly #connection: LinkConnection;
  readonly #stream: number;
  /** Called when everything written has been sent, after `write` has returned false. */
  readonly #onDrain: () => void;
  #window = WINDOW_BYTES;
  #pending: Buffer[] = [];
  #isEnding = false;
  #isOver = false;
  /** Head of the latest frame, and the turn of the connection in which it was sent. */
  #latest: { readonly head: Buffer; readonly turn: number } | undefined;

  constructor(connection: LinkConnection, stream: number, onDrain: () => void) {
    this.#connection = connection;
    this.#stream = stream;
    this.#onDrain = onDrain;
  }

  /** True if the whole body has been sent, or if the other end does not need the rest. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns false if the caller has to wait for `onDrain`. */
  write(bytes: Buffer): boolean {
    if (this.#isOver || bytes.length === 0) return true;
    this.#pending.push(bytes);
    return this.#send();
  }

  /** Ends the body after everything written. */
  end(): void {
    if (this.#isOver) return;
    this.#isEnding = true;
    if (this.#pending.length === 0) this.#finish();
  }

  /** Discards the rest of the body, which the other end does not need. */
  stop(): void {
    this.#isOver = true;
    this.#pending = [];
  }

  /** Adds bytes that the other end has read to the window. Returns false if it claims more than was sent. */
  widen(bytes: number): boolean {
    this.#window += bytes;
    if (this.#window > WINDOW_BYTES) return false;
    this.goOn();
    return true;
  }

  /** Continues to send when the connection or the window has capacity again. */
  goOn(): void {
    if (this.#isOver || this.#pending.length === 0 || !this.#send()) return;
    if (this.#isEnding) this.#finish();
    else this.#onDrain();
  }

  #send(): boolean {
    for (let first = this.#pending[0]; first !== undefined; first = this.#pending[0]) {
      if (this.#window === 0) return false;
      if (this.#connection.isFull) {
        this.#connection.wait(this);
        return false;
      }
      const length = Math.min(first.length, this.#window, MAX_PAYLOAD_BYTES);
      const payload = length === first.length ? first : first.subarray(0, length);
      if (length === first.length) this.#pending.shift();
      else this.#pending[0] = first.subarray(length);
      this.#window -= length;
      const head = this.#connection.send('data', this.#stream, payload);
      this.#latest = { head, turn: this.#connection.turn };
    }
    return true;
  }

  #finish(): void {
    this.#isOver = true;
    if (this.#latest?.turn === this.#connection.turn) markLast(this.#latest.head);
    else this.#connection.send('data', this.#stream, NOTHING, 'last');
  }
}

/** Counts the bytes received of one body, and reports to the other end how many have been read. */
export class BodyInput {
  readonly #connection: LinkConnection;
  readonly #stream: number;
  #unread = 0;
  #untold = 0;
  #isOver = false;

  constructor(connection: LinkConnection, stream: number) {
    this.#connection = connection;
    this.#stream = stream;
  }

  /** Counts received bytes. Returns false if the sender has exceeded the window. */
  came(bytes: number): boolean {
    this.#unread += bytes;
    return this.#unread <= WINDOW_BYTES;
  }

  /** Call this when the body is complete; no further window frames are sent. */
  end(): void {
    this.#isOver = true;
  }

  /**
   * Counts read bytes. They are reported once they reach half a window, because a frame for each small part costs too
   * much.
   */
  read(bytes: number): void {
    this.#untold += bytes;
    if (this.#isOver || this.#untold < WINDOW_BYTES / 2) return;
    this.#connection.send('window', this.#stream, encodeWindow(this.#untold));
    this.#unread -= this.#untold;
    this.#untold = 0;
  }
}
