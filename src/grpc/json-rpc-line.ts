/**
 * `JsonRpcLine`, the message of `mcp.transport.v1.Mcp/Session`, in Protocol Buffers:
 *
 *     message JsonRpcLine { string line = 1; string related_request_id = 2; string resumption_token = 3; }
 *
 * `line` is one JSON-RPC message. A server sets `related_request_id` on what belongs to a call of the client.
 * `resumption_token` is read by nobody, because a session ends with its stream. Strings are not checked here: who reads
 * the JSON checks its UTF-8. [Protocol Buffers, Encoding]
 */
import { HEADER_BYTES } from './message-splitter.ts';

/** Wire types. Groups (3 and 4) do not exist in proto3. */
const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;

const LINE_FIELD = 1;
const LINE_TAG = (LINE_FIELD << 3) | LENGTH_DELIMITED;
const RELATED_REQUEST_ID_TAG = (2 << 3) | LENGTH_DELIMITED;

/** A varint of 32 bits. Tags and lengths have no more, since no message is longer. */
const MAX_VARINT_BYTES = 5;
/** A varint of 64 bits, the longest in a field that is skipped. */
const MAX_SKIPPED_VARINT_BYTES = 10;

/**
 * Bytes that a message may have beside its line: tags, lengths, and two ids. This suffices for any id that is not a
 * payload of its own.
 */
export const MAX_ENVELOPE_BYTES = 4 * 1024;

/** Longer lines are written without a copy. */
const JOIN_BELOW_BYTES = 16 * 1024;

const NOTHING = Buffer.alloc(0);

/**
 * Encodes a line as one gRPC message, with its length prefix. Returns the parts to write, in their order.
 * @param relatedRequestId the id of the call that the line belongs to, as text
 */
export function encodeLine(line: Buffer, relatedRequestId?: string): readonly Buffer[] {
  const related = relatedRequestId === undefined ? NOTHING : encodeRelated(relatedRequestId);
  const messageBytes = 1 + varintLength(line.length) + line.length + related.length;
  const head = Buffer.allocUnsafe(HEADER_BYTES + 1 + varintLength(line.length));
  head[0] = 0;
  head.writeUInt32BE(messageBytes, 1);
  head[HEADER_BYTES] = LINE_TAG;
  writeVarint(head, HEADER_BYTES + 1, line.length);
  const parts = related.length === 0 ? [head, line] : [head, line, related];
  return line.length < JOIN_BELOW_BYTES ? [Buffer.concat(parts)] : parts;
}

function encodeRelated(id: string): Buffer {
  const length = Buffer.byteLength(id);
  if (length === 0) return NOTHING;
  const field = Buffer.allocUnsafe(1 + varintLength(length) + length);
  field[0] = RELATED_REQUEST_ID_TAG;
  field.write(id, writeVarint(field, 1, length));
  return field;
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}

/** Returns the offset after the varint. */
function writeVarint(bytes: Buffer, offset: number, value: number): number {
  let rest = value;
  let at = offset;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) {
    bytes[at] = (rest % 0x80) | 0x80;
    at += 1;
  }
  bytes[at] = rest;
  return at + 1;
}

/**
 * Returns the line of a message, as a part of its bytes; empty if it has none. Undefined if the bytes are no such
 * message. Of a field that occurs twice the last one counts, and unknown fields are skipped, as proto3 wants.
 */
export function decodeLine(message: Buffer): Buffer | undefined {
  const reader = new FieldReader(message);
  let line: Buffer = NOTHING;
  while (reader.hasMore) {
    const field = reader.next();
    if (field === undefined) return undefined;
    if (field.number === LINE_FIELD && field.bytes !== undefined) line = field.bytes;
  }
  return line;
}

/** A field of a message. `bytes` is undefined for a number. */
export interface Field {
  readonly number: number;
  readonly bytes: Buffer | undefined;
}

/** Reads the fields of a message one after the other. */
export class FieldReader {
  readonly #message: Buffer;
  #offset = 0;

  constructor(message: Buffer) {
    this.#message = message;
  }

  get hasMore(): boolean {
    return this.#offset < this.#message.length;
  }

  /** Returns undefined if the bytes are not a field. Nothing can be read after that. */
  next(): Field | undefined {
    const tag = this.#varint();
    const number = tag === undefined ? 0 : tag >>> 3;
    if (tag === undefined || number === 0) return undefined;
    switch (tag & 7) {
      case VARINT:
        return this.#skipVarint() ? { number, bytes: undefined } : undefined;
      case FIXED_64:
        return this.#skip(8) ? { number, bytes: undefined } : undefined;
      case FIXED_32:
        return this.#skip(4) ? { number, bytes: undefined } : undefined;
      case LENGTH_DELIMITED: {
        const length = this.#varint();
        const start = this.#offset;
        if (length === undefined || !this.#skip(length)) return undefined;
        return { number, bytes: this.#message.subarray(start, this.#offset) };
      }
      default:
        return undefined;
    }
  }

  #skip(bytes: number): boolean {
    this.#offset += bytes;
    return this.#offset <= this.#message.length;
  }

  /** Reads a number below 2³². */
  #varint(): number | undefined {
    let value = 0;
    for (let index = 0; index < MAX_VARINT_BYTES; index += 1) {
      const byte = this.#message[this.#offset];
      if (byte === undefined) return undefined;
      this.#offset += 1;
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return value < 2 ** 32 ? value : undefined;
    }
    return undefined;
  }

  #skipVarint(): boolean {
    for (let index = 0; index < MAX_SKIPPED_VARINT_BYTES; index += 1) {
      const byte = this.#message[this.#offset];
      if (byte === undefined) return false;
      this.#offset += 1;
      if (byte < 0x80) return true;
    }
    return false;
  }
}
