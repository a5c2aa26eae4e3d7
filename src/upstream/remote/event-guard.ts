import { CR, LF } from '../../wire/ascii.ts';

/** Longest line kept of a field other than data. */
const MAX_SHORT_LINE_BYTES = 1024;
/** So much of the end of an event that is too long is kept: it may hold the message's id. */
export const KEPT_TAIL_BYTES = 1024;
/** A server may ask for any pause; beyond this a timer would fire at once. */
const MAX_RETRY_MS = 2 ** 31 - 1;

const D = 0x64;
const E = 0x65;
const I = 0x69;
const R = 0x72;

const BOM = Buffer.of(0xef, 0xbb, 0xbf);
const NEWLINE = Buffer.of(LF);
const TAIL_FIELD = Buffer.from('data:');

/**
 * Stands before the `eventsource` package, which keeps whatever it is sent: an event of any length, a line that never
 * ends. What comes out is the same stream without comments and unknown fields, every line ended by LF, and no event
 * with more than `maxEventBytes` of data and a little; an event over that is left with its head and its tail, so that
 * the receiver can tell which message it was.
 */
export class EventGuard {
  readonly #maxEventBytes: number;
  #out: Buffer[] = [];
  /** First byte of the current line; -1 at its start. */
  #field = -1;
  #lineBytes = 0;
  /** A `retry` line, which is read before it is passed on. */
  #retry = '';
  #eventBytes = 0;
  #tail = EMPTY;
  #endedWithCr = false;
  /** How much of a byte order mark has been seen; all of it also once there can be none. */
  #bomBytes = 0;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** What is to be passed on of the next part of the stream; may be empty. */
  push(chunk: Buffer): Buffer {
    let start = this.#skipBom(chunk);
    while (start < chunk.length) {
      if (this.#endedWithCr && chunk[start] === LF) {
        this.#endedWithCr = false;
        start += 1;
        continue;
      }
      this.#endedWithCr = false;
      const end = lineEnd(chunk, start);
      if (end > start) this.#part(chunk.subarray(start, end));
      if (end === chunk.length) break;
      this.#endedWithCr = chunk[end] === CR;
      this.#endLine();
      start = end + 1;
    }
    const passed = this.#out.length === 1 ? (this.#out[0] as Buffer) : Buffer.concat(this.#out);
    this.#out = [];
    return passed;
  }

  /** [spec WHATWG HTML server-sent events] one byte order mark at the very start does not count. */
  #skipBom(chunk: Buffer): number {
    let at = 0;
    while (this.#bomBytes < BOM.length && at < chunk.length) {
      if (chunk[at] !== BOM[this.#bomBytes]) {
        // A part of a mark is the start of a field nobody knows.
        if (this.#bomBytes > 0) this.#field = BOM[0] as number;
        this.#bomBytes = BOM.length;
      } else {
        this.#bomBytes += 1;
        at += 1;
      }
    }
    return at;
  }

  #part(part: Buffer): void {
    if (this.#field === -1) this.#field = part[0] as number;
    switch (this.#field) {
      case D:
        return this.#dataPart(part);
      case E:
      case I: {
        const room = MAX_SHORT_LINE_BYTES - this.#lineBytes;
        this.#lineBytes += part.length;
        if (room > 0) this.#out.push(part.subarray(0, room));
        return;
      }
      case R:
        if (this.#retry.length < MAX_SHORT_LINE_BYTES) this.#retry += part.toString('latin1');
        return;
      default: // a comment, or a field nobody knows
    }
  }

  #dataPart(part: Buffer): void {
    const room = this.#maxEventBytes + KEPT_TAIL_BYTES - this.#eventBytes;
    this.#eventBytes += part.length;
    if (room > 0) this.#out.push(part.subarray(0, room));
    if (room >= part.length) return;
    const rest = part.subarray(Math.max(0, room));
    this.#tail = Buffer.concat([this.#tail, rest.subarray(-KEPT_TAIL_BYTES)]).subarray(-KEPT_TAIL_BYTES);
  }

  #endLine(): void {
    const field = this.#field;
    this.#field = -1;
    this.#lineBytes = 0;
    if (field === -1) return this.#endEvent();
    if (field === R) this.#out.push(this.#boundedRetry());
    else if (field === D || field === E || field === I) this.#out.push(NEWLINE);
  }

  #endEvent(): void {
    if (this.#tail.length > 0) this.#out.push(TAIL_FIELD, this.#tail, NEWLINE);
    this.#out.push(NEWLINE);
    this.#eventBytes = 0;
    this.#tail = EMPTY;
  }

  #boundedRetry(): Buffer {
    const [, digits] = /^retry: ?(\d+)$/.exec(this.#retry) ?? [];
    this.#retry = '';
    return digits === undefined ? EMPTY : Buffer.from(`retry: ${Math.min(MAX_RETRY_MS, Number(digits))}\n`);
  }
}

const EMPTY = Buffer.alloc(0);

/** Offset of the CR or LF that ends the line, or the chunk's length. */
function lineEnd(chunk: Buffer, start: number): number {
  const lf = chunk.indexOf(LF, start);
  const end = lf === -1 ? chunk.length : lf;
  const cr = chunk.subarray(start, end).indexOf(CR);
  return cr === -1 ? end : start + cr;
}
