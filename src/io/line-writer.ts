import type { Writable } from 'node:stream';
import { LF } from '../wire/json/ascii.ts';

/** Shorter messages are copied into one buffer; longer ones are written without a copy. */
export const JOIN_BELOW_BYTES = 16 * 1024;
/**
 * The writer is full from this size on. It must not be below Node's own high-water mark, whose `drain` event ends the
 * wait.
 */
export const HIGH_WATER_BYTES = 64 * 1024;

const NEWLINE = Buffer.of(LF);

/**
 * Writes messages as lines. The first one in a turn of the event loop is written at once; further ones in the same turn
 * are written together at its end, which saves a system call per message in bursts. After a turn with several messages,
 * the first of the next turn is also kept until its end.
 *
 * `send` accepts every message: the caller limits the queue by pausing its source when `send` returns false, until
 * `onDrain` is called. Messages that it sends meanwhile, such as responses and cancellations, are accepted as well.
 */
export class LineWriter {
  readonly #stream: Writable;
  readonly #onDrain: () => void;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #linesInTurn = 0;
  /** True if the last turn had several messages, so that this one probably has several too. */
  #isBurst = false;
  /** True if `send` has returned false and `onDrain` has not been called since. */
  #owesDrain = false;

  /** @param onDrain called once after `send` returned false, when there is capacity again; never from within `send` */
  constructor(stream: Writable, onDrain: () => void) {
    this.#stream = stream;
    this.#onDrain = onDrain;
    stream.on('drain', () => this.#tellDrained());
  }

  /**
   * Sends a line, whose bytes must not change afterward. Returns false if the writer is full. Drops lines after the
   * end of the stream.
   */
  send(line: Buffer): boolean {
    if (this.#stream.destroyed || this.#stream.writableEnded) return true;
    if (this.#linesInTurn === 0) setImmediate(() => this.#endTurn());
    this.#linesInTurn += 1;
    if (this.#linesInTurn === 1 && !this.#isBurst) {
      this.#write([line]);
    } else {
      this.#queue.push(line);
      this.#queuedBytes += line.length + NEWLINE.length;
    }
    if (!this.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  /** Writes the kept lines now instead of at the end of the turn. */
  flush(): void {
    if (this.#queue.length === 0) return;
    const lines = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#write(lines);
  }

  /** True if a further message would have to wait. */
  get isFull(): boolean {
    return this.waitingBytes >= HIGH_WATER_BYTES;
  }

  /** Bytes that the operating system has not accepted yet. */
  get waitingBytes(): number {
    return this.#queuedBytes + this.#stream.writableLength;
  }

  #endTurn(): void {
    this.#isBurst = this.#linesInTurn > 1;
    this.#linesInTurn = 0;
    this.flush();
    this.#tellDrained();
  }

  #tellDrained(): void {
    if (!this.#owesDrain || this.isFull) return;
    this.#owesDrain = false;
    this.#onDrain();
  }

  #write(lines: readonly Buffer[]): void {
    const stream = this.#stream;
    stream.cork();
    let small: Buffer[] = [];
    for (const line of lines) {
      if (line.length >= JOIN_BELOW_BYTES) {
        if (small.length > 0) stream.write(Buffer.concat(small));
        small = [];
        stream.write(line);
      } else {
        small.push(line);
      }
      small.push(NEWLINE);
    }
    stream.write(small.length === 1 ? NEWLINE : Buffer.concat(small));
    stream.uncork();
  }
}
