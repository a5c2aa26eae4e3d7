/** What is kept of bytes that come in parts: all of them, or both ends of something over-long. */
/** Smaller parts are copied together, so that memory stays in proportion to the bytes even if they come one by one. */
const COPY_BELOW_BYTES = 4 * 1024;
const BLOCK_BYTES = 16 * 1024;

/** Gathers the parts of something that is split over chunks. Large parts are kept by reference and joined once. */
export class ByteCollector {
  #parts: Buffer[] = [];
  /** The last of the parts while it is a block of ours that is not full, and how much of it is used. */
  #block: Buffer | undefined;
  #blockUsed = 0;
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  append(part: Buffer): void {
    this.#byteLength += part.length;
    if (part.length >= COPY_BELOW_BYTES) {
      this.#sealBlock();
      this.#parts.push(part);
      return;
    }
    if (this.#block === undefined || this.#blockUsed + part.length > this.#block.length) {
      this.#sealBlock();
      // A lone short part is common (a line cut once by a chunk's end) and not worth a whole block.
      const isFirst = this.#parts.length === 0;
      this.#block = Buffer.allocUnsafe(isFirst ? COPY_BELOW_BYTES : BLOCK_BYTES);
      this.#blockUsed = 0;
    }
    part.copy(this.#block, this.#blockUsed);
    this.#blockUsed += part.length;
  }

  /** Everything appended, in one buffer that the caller owns; the collector is empty afterwards. */
  take(): Buffer {
    this.#sealBlock();
    const [first] = this.#parts;
    const whole = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts);
    this.clear();
    return whole;
  }

  clear(): void {
    this.#parts = [];
    this.#block = undefined;
    this.#blockUsed = 0;
    this.#byteLength = 0;
  }

  #sealBlock(): void {
    if (this.#block !== undefined) this.#parts.push(this.#block.subarray(0, this.#blockUsed));
    this.#block = undefined;
  }
}

/** A copy with memory of its own: keeping a part of what was read keeps all that was read with it. */
export function ownBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** How much of each end of something over-long is kept: enough for the envelope of any sane message. */
export const KEPT_END_BYTES = 1024;

/** What is left of something that was too long to keep. */
export interface SkippedEnds {
  /** The first and the last bytes, up to 1,024 each; see recoverEnvelope. */
  readonly head: Buffer;
  readonly tail: Buffer;
}

/** Keeps both ends of a message of any length in constant memory. */
export class SkippedBytes implements SkippedEnds {
  byteLength = 0;
  head: Buffer = Buffer.alloc(0);
  /** The newest bytes; moved to the front when the space behind them runs out. */
  readonly #recent = Buffer.allocUnsafe(4 * KEPT_END_BYTES);
  #recentUsed = 0;

  get tail(): Buffer {
    return this.#recent.subarray(Math.max(0, this.#recentUsed - KEPT_END_BYTES), this.#recentUsed);
  }

  append(part: Buffer): void {
    this.byteLength += part.length;
    const missing = KEPT_END_BYTES - this.head.length;
    if (missing > 0) this.head = Buffer.concat([this.head, part.subarray(0, missing)]);
    const news = part.subarray(-KEPT_END_BYTES);
    if (this.#recentUsed + news.length > this.#recent.length) {
      this.#recent.copyWithin(0, this.#recentUsed - KEPT_END_BYTES, this.#recentUsed);
      this.#recentUsed = KEPT_END_BYTES;
    }
    news.copy(this.#recent, this.#recentUsed);
    this.#recentUsed += news.length;
  }
}
