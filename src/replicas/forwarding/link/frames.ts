/**
 * Frames on a link between two replicas. Each frame belongs to one stream, or to the link itself. A stream is one
 * forwarded request and its response.
 */

/**
 * - `open`: begins a request; the payload is its head.
 * - `head`: begins a response; the payload is its head.
 * - `data`: a part of a body.
 * - `window`: the number of further body bytes that the receiver accepts, as an unsigned 32-bit integer.
 * - `reset`: the sender does not need the stream anymore, or cannot continue it.
 * - `ping`, `pong`: a check whether the other end responds, and the reply. Neither belongs to a stream.
 * - `leave`: the owner serves no stream with a higher number than this one, and has done nothing for such streams.
 */
export const FRAME_TYPES = { open: 1, head: 2, data: 3, window: 4, reset: 5, ping: 6, pong: 7, leave: 8 } as const;

export type FrameType = keyof typeof FRAME_TYPES;

export interface LinkFrame {
  readonly type: FrameType;
  /** Stream number; 0 stands for the link itself. */
  readonly stream: number;
  /**
   * - `more`: the head continues in the next frame.
   * - `last`: the sender sends nothing more on this stream.
   * - `none`: neither of them.
   */
  readonly mark: FrameMark;
  readonly payload: Buffer;
}

export type FrameMark = 'none' | 'more' | 'last';

/** Type and mark in one byte, length of the payload in three, stream number in four. */
export const FRAME_HEAD_BYTES = 8;
/** Small enough for streams to be interleaved, and large enough to make the overhead of the frame's head negligible. */
export const MAX_PAYLOAD_BYTES = 64 * 1024;
export const MAX_STREAM = 0xffff_ffff;

const LAST = 0x80;
const MORE = 0x40;
const TYPE = 0x3f;
const WINDOW_BYTES = 4;

const NAMES: readonly (FrameType | undefined)[] = [
  undefined,
  'open',
  'head',
  'data',
  'window',
  'reset',
  'ping',
  'pong',
  'leave',
];
/** Marks by the two highest bits of a frame. The value with both bits set is invalid. */
const MARKS: readonly (FrameMark | undefined)[] = ['none', 'more', 'last'];
const EMPTY = Buffer.alloc(0);

/** Encodes the head of a frame. The payload is sent after it. */
export function encodeFrameHead(type: FrameType, stream: number, mark: FrameMark, payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES);
  const marked = mark === 'last' ? LAST : mark === 'more' ? MORE : 0;
  head.writeUInt32BE((((FRAME_TYPES[type] | marked) << 24) | payloadBytes) >>> 0, 0);
  head.writeUInt32BE(stream, 4);
  return head;
}

/** Marks a frame that has been queued but not written as the last of its stream. */
export function markLast(head: Buffer): void {
  head[0] = (head[0] ?? 0) | LAST;
}

export function encodeWindow(bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(WINDOW_BYTES);
  payload.writeUInt32BE(bytes, 0);
  return payload;
}

/** Returns the byte count of a `window` frame. */
export function windowOf({ payload }: LinkFrame): number {
  return payload.length === WINDOW_BYTES ? payload.readUInt32BE(0) : 0;
}

/**
 * A payload shares its buffer with surrounding bytes, which it keeps in memory. A payload with more of them than this
 * is copied.
 */
const MAX_KEPT_WITH_BYTES = 8 * 1024;

/** Returns the payload in a form that can be kept until it is read. */
export function detachPayload(payload: Buffer): Buffer {
  return payload.buffer.byteLength - payload.length > MAX_KEPT_WITH_BYTES ? Buffer.from(payload) : payload;
}

/**
 * Received chunks of an incomplete frame are joined beyond this number, because each chunk costs more memory than its
 * bytes.
 */
const MAX_PIECES = 256;

/** Finds frames in a byte stream that is split at any position. At most one incomplete frame is buffered. */
export class FrameReader {
  /** Received chunks of the next frame. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Bytes needed to complete the next frame, or its head while its length is unknown. */
  #neededBytes = FRAME_HEAD_BYTES;

  /**
   * Passes complete frames to `take` in order until it returns false.
   * @returns false if the bytes are not frames
   */
  push(piece: Buffer, take: (frame: LinkFrame) => boolean): boolean {
    this.#bytes += piece.length;
    if (this.#bytes < this.#neededBytes) {
      this.#pieces.push(piece);
      if (this.#pieces.length > MAX_PIECES) this.#pieces = [Buffer.concat(this.#pieces, this.#bytes)];
      return true;
    }
    const bytes = this.#pieces.length === 0 ? piece : Buffer.concat([...this.#pieces, piece], this.#bytes);
    const rest = this.#takeAll(bytes, take);
    if (rest === undefined) return false;
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    return true;
  }

  /** Returns the rest that belongs to the next frame, or undefined if the bytes are not frames. */
  #takeAll(bytes: Buffer, take: (frame: LinkFrame) => boolean): Buffer | undefined {
    let at = 0;
    for (;;) {
      this.#neededBytes = FRAME_HEAD_BYTES;
      if (bytes.length - at < FRAME_HEAD_BYTES) return bytes.subarray(at);
      const first = bytes.readUInt32BE(at);
      const payloadBytes = first & 0xff_ffff;
      const type = NAMES[(first >>> 24) & TYPE];
      const mark = MARKS[first >>> 30];
      if (type === undefined || mark === undefined || payloadBytes > MAX_PAYLOAD_BYTES) return undefined;
      this.#neededBytes = FRAME_HEAD_BYTES + payloadBytes;
      const end = at + this.#neededBytes;
      if (end > bytes.length) return bytes.subarray(at);
      const payload = payloadBytes === 0 ? EMPTY : bytes.subarray(at + FRAME_HEAD_BYTES, end);
      if (!take({ type, stream: bytes.readUInt32BE(at + 4), mark, payload })) return EMPTY;
      at = end;
    }
  }
}
