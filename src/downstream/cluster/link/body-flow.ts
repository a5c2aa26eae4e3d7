import type { LinkConnection, WaitingBody } from './connection.ts';
import { encodeWindow, MAX_PAYLOAD_BYTES, markLast } from './frames.ts';

/**
 * Bytes of one body that may be on their way, or wait at the other end for a reader. So much of each stream that is not read
 * is in memory there: half a gigabyte if none of the 4096 is. It is two round trips at full speed in one data center.
 */
export const WINDOW_BYTES = 128 * 1024;

const NOTHING = Buffer.alloc(0);

/** Sends one body, no faster than the other end takes it and the connection carries it. */
export class BodyOutput implements WaitingBody {
  readonly #connection: LinkConnection;
  readonly #stream: number;
  /** Called when all that was written is sent, after `write` has returned false. */
  readonly #onDrain: () => void;
  #window = WINDOW_BYTES;
  #pending: Buffer[] = [];
  #isEnding = false;
  #isOver = false;
  /** Head of the latest frame, and the turn in which it leaves. */
  #latest: { readonly head: Buffer; readonly turn: number } | undefined;

  constructor(connection: LinkConnection, stream: number, onDrain: () => void) {
    this.#connection = connection;
    this.#stream = stream;
    this.#onDrain = onDrain;
  }

  /** Whether the last of it has been sent, or nobody wants it any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** False: wait for `onDrain`. */
  write(bytes: Buffer): boolean {
    if (this.#isOver || bytes.length === 0) return true;
    this.#pending.push(bytes);
    return this.#send();
  }

  /** After all that was written. */
  end(): void {
    if (this.#isOver) return;
    this.#isEnding = true;
    if (this.#pending.length === 0) this.#finish();
  }

  /** Nobody wants the rest. */
  stop(): void {
    this.#isOver = true;
    this.#pending = [];
  }

  /** The other end has taken so much. False: more than there was. */
  widen(bytes: number): boolean {
    this.#window += bytes;
    if (this.#window > WINDOW_BYTES) return false;
    this.goOn();
    return true;
  }

  /** The connection has capacity again, or the window has. */
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

/** Takes one body, and tells the other end what has been read of it. */
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

  /** So much has come. False: more than was welcome. */
  came(bytes: number): boolean {
    this.#unread += bytes;
    return this.#unread <= WINDOW_BYTES;
  }

  /** No more of it comes. */
  end(): void {
    this.#isOver = true;
  }

  /** So much of it was read. In small parts that is not worth a frame each. */
  read(bytes: number): void {
    this.#untold += bytes;
    if (this.#isOver || this.#untold < WINDOW_BYTES / 2) return;
    this.#connection.send('window', this.#stream, encodeWindow(this.#untold));
    this.#unread -= this.#untold;
    this.#untold = 0;
  }
}
