import type { Writable } from 'node:stream';
import { LF } from '../wire/json/ascii.ts';

/** Messages below this are copied together; larger ones are handed over as they are. */
export const JOIN_BELOW_BYTES = 16 * 1024;
/** From here on the writer is full. Not below Node's own mark, whose `drain` is what ends the wait. */
export const HIGH_WATER_BYTES = 64 * 1024;

const NEWLINE = Buffer.of(LF);

/**
 * Writes messages as lines. The first one of a turn of the event loop goes out at once; what follows in the same turn
 * is kept and written together at its end, which saves a system call per message when they come in bursts. After a turn
 * with several the first of the next is kept, too.
 *
 * Whatever is sent is taken: the queue is bounded by the caller, who stops its source when `send` returns false and
 * goes on when told that there is capacity. What a caller sends in between (answers, cancellations) is taken as well.
 */
export class LineWriter {
  readonly #stream: Writable;
  readonly #onDrain: () => void;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #linesInTurn = 0;
  /** The last turn brought several messages, so this one is likely to bring several. */
  #isBurst = false;
  /** `send` has returned false and `onDrain` has not been called since. */
  #owesDrain = false;

  /** @param onDrain called once after `send` returned false, when there is capacity again; never from within `send` */
  constructor(stream: Writable, onDrain: () => void) {
    this.#stream = stream;
    this.#onDrain = onDrain;
    stream.on('drain', () => this.#tellDrained());
  }

  /** The bytes must not change afterwards. False: full. A stream that has ended swallows everything. */
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

  /** Writes what is kept now instead of at the end of the turn. */
  flush(): void {
    if (this.#queue.length === 0) return;
    const lines = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#write(lines);
  }

  /** Would another message have to wait? */
  get isFull(): boolean {
    return this.waitingBytes >= HIGH_WATER_BYTES;
  }

  /** Written, and not taken by the operating system yet. */
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
