/** Measured memory per fragment and per chunk in addition to their bytes: the object and its place in a list. */
export const FRAGMENT_COST_BYTES = 128;
export const CHUNK_COST_BYTES = 512;

/** [RFC 6455 5.2] Two bytes, up to eight for the length, and four for the mask. */
const MAX_HEAD_BYTES = 14;
const FIN = 0x80;
const OPCODE = 0x0f;
const FIRST_CONTROL_OPCODE = 0x8;
const CLOSE_OPCODE = 0x8;
const MASKED = 0x80;
const SHORT_LENGTH = 0x7f;

/**
 * Tracks the frames of one connection by their headers: where each frame ends, and how much memory an incomplete
 * message uses. The library does not report that, although it keeps an object for each fragment, and a whole chunk for
 * any part of it.
 */
export class ArrivingFrames {
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES);
  #headBytes = 0;
  /** Bytes still missing of the frame whose header is complete. */
  #payloadLeft = 0;
  #opcode = 0;
  #endsMessage = false;
  #heldBytes = 0;
  /** The buffer that was counted last, because several consecutive chunks may be parts of it. */
  #heldMemory: ArrayBufferLike | undefined;
  #ended = 0;
  #isClosed = false;

  /** Memory used by the incomplete message; 0 if there is none. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Number of frames that ended in the bytes of the last `push`. */
  get ended(): number {
    return this.#ended;
  }

  /** True after a complete close frame. Later bytes are ignored. [RFC 6455 5.5.1] */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Processes a chunk until `maxFrames` frames have ended, a close frame has ended, or the chunk ends. Returns the
   * number of bytes processed.
   */
  push(chunk: Buffer, maxFrames: number): number {
    let isKept = this.#payloadLeft > 0 && !this.#isControl;
    let fragments = 0;
    let at = 0;
    this.#ended = 0;
    while (at < chunk.length && this.#ended < maxFrames && !this.#isClosed) {
      if (this.#payloadLeft > 0) {
        const passed = Math.min(this.#payloadLeft, chunk.length - at);
        this.#payloadLeft -= passed;
        at += passed;
      } else {
        at = this.#readHead(chunk, at);
        // An incomplete header is kept too, but it is short and may belong to a ping.
        if (this.#headBytes > 0) break;
        if (!this.#isControl) {
          isKept = true;
          fragments += 1;
        }
      }
      if (this.#payloadLeft > 0) continue;
      this.#ended += 1;
      this.#isClosed = this.#opcode === CLOSE_OPCODE;
      if (this.#isControl || !this.#endsMessage) continue;
      this.#heldBytes = 0;
      this.#heldMemory = undefined;
      isKept = false;
      fragments = 0;
    }
    if (isKept && at > 0) this.#hold(chunk.buffer, fragments);
    return at;
  }

  #hold(memory: ArrayBufferLike, fragments: number): void {
    this.#heldBytes += CHUNK_COST_BYTES + fragments * FRAGMENT_COST_BYTES;
    if (memory === this.#heldMemory) return;
    this.#heldMemory = memory;
    this.#heldBytes += memory.byteLength;
  }

  get #isControl(): boolean {
    return this.#opcode >= FIRST_CONTROL_OPCODE;
  }

  /** Returns the end of the header, or the end of the chunk if the header is incomplete. */
  #readHead(chunk: Buffer, start: number): number {
    let at = start;
    while (at < chunk.length) {
      this.#head[this.#headBytes] = chunk[at] as number;
      this.#headBytes += 1;
      at += 1;
      if (this.#headBytes >= 2 && this.#headBytes === this.#headLength()) {
        this.#begin();
        return at;
      }
    }
    return at;
  }

  #headLength(): number {
    const second = this.#head[1] as number;
    const short = second & SHORT_LENGTH;
    const more = short === 126 ? 2 : short === 127 ? 8 : 0;
    return 2 + more + ((second & MASKED) === 0 ? 0 : 4);
  }

  #begin(): void {
    const [first = 0, second = 0] = this.#head;
    const short = second & SHORT_LENGTH;
    this.#payloadLeft =
      short === 126 ? this.#head.readUInt16BE(2) : short === 127 ? Number(this.#head.readBigUInt64BE(2)) : short;
    this.#opcode = first & OPCODE;
    this.#headBytes = 0;
    if (!this.#isControl) this.#endsMessage = (first & FIN) !== 0;
  }
}
