/**
 * Collectors for bytes that arrive in parts: `ByteCollector` keeps all, `SkippedBytes` both ends of data that is too
 * long. Shorter parts are copied into blocks, so that memory stays proportional to the bytes even if they arrive
 * singly.
 */
const COPY_BELOW_BYTES = 4 * 1024;
const BLOCK_BYTES = 16 * 1024;

/** Collects data that is split over several chunks. Large parts are kept by reference and joined once. */
export class ByteCollector {
  #parts: Buffer[] = [];
  /** The last part while it is an own block with free space; `#blockUsed` bytes of it are used. */
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

  /** Returns all bytes in one buffer that the caller owns, and empties the collector. */
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

/** Copies bytes into memory of their own, because a subarray keeps the whole chunk that it was read from. */
export function ownBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Bytes kept of each end of oversized data, enough for the envelope of any sane message. */
export const KEPT_END_BYTES = 1024;

/**
 * The first and the last bytes of data that was too long to keep, up to `KEPT_END_BYTES` each. recoverEnvelope reads
 * them.
 */
export interface SkippedEnds {
  readonly head: Buffer;
  readonly tail: Buffer;
}

/** Keeps both ends of a message of any length in constant memory. */
export class SkippedBytes implements SkippedEnds {
  byteLength = 0;
  head: Buffer = Buffer.alloc(0);
  /** The latest bytes; moved to the front when the buffer is full. */
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
