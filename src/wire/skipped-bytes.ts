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
