/** What a fragment or a chunk costs beside its bytes, measured: the object that stands for it, and its place in a list. */
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
 * Follows the frames that come in from one connection by their heads alone: where each ends, and how much memory the message
 * has that is not complete. The library keeps that to itself: each fragment as an object of its own, and with a part of a
 * chunk all of it.
 */
export class ArrivingFrames {
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES);
  #headBytes = 0;
  /** What has still to come of the frame whose head is complete. */
  #payloadLeft = 0;
  #opcode = 0;
  #endsMessage = false;
  #heldBytes = 0;
  /** The memory that was counted last: several parts of it may come one after the other. */
  #heldMemory: ArrayBufferLike | undefined;
  #ended = 0;
  #isClosed = false;

  /** Memory of the message that is not complete; 0: there is none. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Frames that ended in what was followed last. */
  get ended(): number {
    return this.#ended;
  }

  /** A close frame is complete. Nothing that comes behind it counts. [RFC 6455 5.5.1] */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Follows a chunk up to the end of so many frames, or of a close frame, or to its own end. Returns how many bytes these are. */
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
        // A head that is not complete is kept as well, but it is short, and may be one of a ping.
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

  /** Returns where it ends, or where the chunk does: then there are bytes of an incomplete head. */
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
