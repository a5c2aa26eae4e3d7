/**
 * What passes on a link between two replicas: frames, each of one stream. A stream is one request that
 * is passed on, and its response on the way back.
 */

/**
 * - `open`: a request begins; its payload is the head.
 * - `head`: a response begins; its payload is the head.
 * - `data`: a part of a body.
 * - `window`: so many further bytes of a body are welcome, as a number of 32 bits.
 * - `reset`: whoever sends it has no further interest in the stream, or cannot go on with it.
 * - `ping`, `pong`: the other end is asked whether it is there, and says so. Of no stream.
 * - `leave`: the owner serves no stream with a higher number than this one, and has done nothing for those.
 */
export const FRAME_TYPES = { open: 1, head: 2, data: 3, window: 4, reset: 5, ping: 6, pong: 7, leave: 8 } as const;

export type FrameType = keyof typeof FRAME_TYPES;

export interface LinkFrame {
  readonly type: FrameType;
  /** 0: the link itself. */
  readonly stream: number;
  /** - `more`: the head goes on in the next frame. - `last`: the sender says no more on this stream. - `none` of both. */
  readonly mark: FrameMark;
  readonly payload: Buffer;
}

export type FrameMark = 'none' | 'more' | 'last';

/** Type and mark in one byte, the length in three, the stream in four. */
export const FRAME_HEAD_BYTES = 8;
/** Small enough that others get their turn in between, and large enough that its own head weighs nothing. */
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
/** By the two highest bits of a frame. None has both of them. */
const MARKS: readonly (FrameMark | undefined)[] = ['none', 'more', 'last'];
const EMPTY = Buffer.alloc(0);

/** The head of a frame, which its payload follows. */
export function encodeFrameHead(type: FrameType, stream: number, mark: FrameMark, payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES);
  const marked = mark === 'last' ? LAST : mark === 'more' ? MORE : 0;
  head.writeUInt32BE((((FRAME_TYPES[type] | marked) << 24) | payloadBytes) >>> 0, 0);
  head.writeUInt32BE(stream, 4);
  return head;
}

/** Makes the frame whose head this is the last of its stream, for as long as it has not left. */
export function markLast(head: Buffer): void {
  head[0] = (head[0] ?? 0) | LAST;
}

export function encodeWindow(bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(WINDOW_BYTES);
  payload.writeUInt32BE(bytes, 0);
  return payload;
}

/** The number in a frame of the type `window`. */
export function windowOf({ payload }: LinkFrame): number {
  return payload.length === WINDOW_BYTES ? payload.readUInt32BE(0) : 0;
}

/** What came before and after it stays in memory with a payload that is kept as it is: no more than so much. */
const MAX_KEPT_WITH_BYTES = 8 * 1024;

/** The payload of a frame, to be kept until somebody has read it. */
export function detachPayload(payload: Buffer): Buffer {
  return payload.buffer.byteLength - payload.length > MAX_KEPT_WITH_BYTES ? Buffer.from(payload) : payload;
}

/** Each piece that waits for the rest of its frame costs more than its bytes. */
const MAX_PIECES = 256;

/** Finds the frames in bytes that come in any pieces. Holds no more than one frame that is not complete. */
export class FrameReader {
  /** What has come of the next frame. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Without these the frame is not complete, or its length is not known yet. */
  #neededBytes = FRAME_HEAD_BYTES;

  /**
   * Hands over the frames that are complete, in their order, until `take` returns false.
   * @returns false: these are no frames
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

  /** Returns what is left for the next frame; undefined: these are no frames. */
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
