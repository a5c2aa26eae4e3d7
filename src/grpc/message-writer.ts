import type { Writable } from 'node:stream';

/** The writer is full from this size on. */
export const HIGH_WATER_BYTES = 64 * 1024;
/** Most that is given to the stream at a time. The rest waits here, where it is counted as it leaves. */
const BATCH_BYTES = 64 * 1024;

/**
 * Writes messages to a stream of HTTP/2. The stream gets one batch at a time and the next when it has passed the first
 * on, which the peer's flow control decides. So nothing is hidden in buffers of Node, the bytes that wait are known, and
 * messages that are sent in a burst leave together.
 */
export class MessageWriter {
  readonly #stream: Writable;
  readonly #onDrain: () => void;
  #queue: Buffer[] = [];
  #waitingBytes = 0;
  #leftBytes = 0;
  #isWriting = false;
  #owesDrain = false;
  readonly #flushed: (() => void)[] = [];

  /** @param onDrain called once after `send` returned false, when there is capacity again; never from within `send` */
  constructor(stream: Writable, onDrain: () => void) {
    this.#stream = stream;
    this.#onDrain = onDrain;
    stream.once('close', () => this.#closed());
  }

  /** Bytes that have not left for the peer. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Bytes that have left for the peer since the beginning. */
  get leftBytes(): number {
    return this.#leftBytes;
  }

  get isFull(): boolean {
    return this.#waitingBytes >= HIGH_WATER_BYTES;
  }

  /**
   * Sends a message in parts, whose bytes must not change afterward. It is accepted in any case. Returns false if the
   * writer is full now. Messages after the end of the stream are dropped.
   */
  send(parts: readonly Buffer[]): boolean {
    if (this.#stream.destroyed || this.#stream.writableEnded) return true;
    for (const part of parts) {
      this.#queue.push(part);
      this.#waitingBytes += part.length;
    }
    this.#write();
    if (!this.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  /** Resolves when everything sent so far has left, or cannot. */
  flush(): Promise<void> {
    if (this.#waitingBytes === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#flushed.push(resolve));
  }

  #write(): void {
    if (this.#isWriting || this.#queue.length === 0) return;
    this.#isWriting = true;
    const batch = this.#takeBatch();
    this.#stream.write(batch, () => {
      this.#isWriting = false;
      this.#waitingBytes -= batch.length;
      this.#leftBytes += batch.length;
      if (this.#stream.destroyed) return;
      this.#write();
      this.#tell();
    });
  }

  #takeBatch(): Buffer {
    const [first] = this.#queue;
    if (first === undefined || first.length >= BATCH_BYTES) return this.#cutBatch();
    const parts: Buffer[] = [];
    let bytes = 0;
    let next: Buffer | undefined = first;
    while (next !== undefined && bytes + next.length <= BATCH_BYTES) {
      parts.push(next);
      bytes += next.length;
      next = this.#queue[parts.length];
    }
    this.#queue.splice(0, parts.length);
    return parts.length === 1 ? first : Buffer.concat(parts, bytes);
  }

  #cutBatch(): Buffer {
    const whole = this.#queue.shift() ?? Buffer.alloc(0);
    if (whole.length > BATCH_BYTES) this.#queue.unshift(whole.subarray(BATCH_BYTES));
    return whole.subarray(0, BATCH_BYTES);
  }

  #tell(): void {
    if (this.#waitingBytes === 0) for (const resolve of this.#flushed.splice(0)) resolve();
    if (!this.#owesDrain || this.isFull) return;
    this.#owesDrain = false;
    this.#onDrain();
  }

  #closed(): void {
    this.#queue = [];
    this.#waitingBytes = 0;
    for (const resolve of this.#flushed.splice(0)) resolve();
  }
}
