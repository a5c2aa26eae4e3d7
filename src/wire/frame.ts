import { decodeId } from './decode-id.ts';
import { CLOSE_BRACE, COMMA, DIGIT_0, DIGIT_9, MINUS, OPEN_BRACE } from './json/ascii.ts';
import { editedOutline } from './json/edited-outline.ts';
import { ObjectEditor } from './json/object-editor.ts';
import { type Outline, outlineOf } from './json/outline.ts';
import { parseJson } from './json/parse-json.ts';
import { type Edit, skipValue } from './json/scan-json.ts';

/** A decoded JSON-RPC id. The scanner rejects fractions, null and integers beyond 2^53-1. */
export type JsonRpcId = string | number;

/** An integer id written as a string, possibly with the zero fraction that some languages print. */
const NUMERIC_TEXT = /^-?\d{1,16}(?:\.0{1,16})?$/;

/**
 * Converts an id to the other JSON type with the same value: 5 for "5", "5" for 5. Some servers and gateways return ids
 * in this form, and the official SDKs' clients accept them. Undefined if the id has no such form.
 */
export function idOfOtherType(id: JsonRpcId): JsonRpcId | undefined {
  if (typeof id === 'number') return String(id);
  if (!NUMERIC_TEXT.test(id)) return undefined;
  const value = Number(id);
  return Number.isSafeInteger(value) ? value : undefined;
}

/**
 * Converts an id or token to a number if the bridge only issued numbers, because some servers return them as strings.
 */
export function asNumber(id: JsonRpcId | undefined): JsonRpcId | undefined {
  return typeof id === 'string' ? idOfOtherType(id) : id;
}

/** Returns true if a response with this id answers the request, exactly or by value. */
export function answersId(id: JsonRpcId | undefined, requested: JsonRpcId | undefined): boolean {
  return id === requested || (id !== undefined && idOfOtherType(id) === requested);
}

export type FrameKind = 'request' | 'notification' | 'result' | 'error';

/** The result of the envelope scan: offsets into the bytes, with -1 for a missing member. No bytes are copied. */
export interface Envelope {
  readonly kind: FrameKind;
  readonly id: JsonRpcId | undefined;
  /** The id's token with its quotes: bytes[idStart, idEnd). */
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string | undefined;
  /** First byte of the value of `params`, `result` or `error`; -1 when there is none. */
  readonly payloadStart: number;
}

/** Scanning a shorter message again costs less than recording its members. */
const WORTH_AN_OUTLINE = 16 * 1024;

/**
 * A JSON-RPC message on its way through the bridge: its unchanged bytes and the result of the envelope scan. The bytes
 * hold exactly one JSON object without CR or LF, so the same bytes are a line on stdio, the data of an SSE event and an
 * HTTP body. The message of a frame is immutable; edits create a new frame.
 */
export class Frame {
  readonly bytes: Buffer;
  readonly kind: FrameKind;
  readonly id: JsonRpcId | undefined;
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string | undefined;
  readonly payloadStart: number;
  /**
   * The number that a recording gives to the client's call which the message belongs to. Edited copies keep it, so that
   * a request is recognized after its translation. 0: unknown, or nothing is recorded.
   */
  recordedCall = 0;
  /** `unread` until the first access. */
  #outline: Outline | 'unread' | undefined;

  constructor(bytes: Buffer, envelope: Envelope, outline?: Outline) {
    this.bytes = bytes;
    this.kind = envelope.kind;
    this.id = envelope.id;
    this.idStart = envelope.idStart;
    this.idEnd = envelope.idEnd;
    this.method = envelope.method;
    this.payloadStart = envelope.payloadStart;
    this.#outline = outline ?? 'unread';
  }

  /**
   * The positions of the message's members. A full read of the message creates the outline; otherwise the first access
   * does, for messages of at least `WORTH_AN_OUTLINE` bytes. Undefined for shorter ones, whose members are found by a
   * walk.
   */
  get outline(): Outline | undefined {
    if (this.#outline === 'unread') {
      this.#outline = this.bytes.length < WORTH_AN_OUTLINE ? undefined : outlineOf(this.bytes);
    }
    return this.#outline;
  }

  /**
   * The outline of an edited copy of this message, if this one's outline exists and the edits keep its members in
   * place. If undefined, the copy's outline is created at its first access.
   */
  outlineOfEdited(edited: Buffer, edits: readonly Edit[]): Outline | undefined {
    const outline = this.#outline;
    if (outline === undefined || outline === 'unread' || edited.length < WORTH_AN_OUTLINE) return undefined;
    return editedOutline(outline, edited, edits);
  }

  /** True for a result and for an error. */
  get isResponse(): boolean {
    return this.kind === 'result' || this.kind === 'error';
  }

  /** Parses the whole message again at each call. Only for the few messages that the bridge must read. */
  json(): unknown {
    return parseJson(this.bytes);
  }
}

// ---- Edits replace bytes of a message; all other bytes stay as written.

const ID_KEY = Buffer.from('"id":');

/** Returns a copy with all edits applied. They must be sorted and may touch, but not overlap; otherwise this throws. */
export function replaceSpans(bytes: Buffer, edits: readonly Edit[]): Buffer {
  let length = bytes.length;
  for (const { start, end, replacement } of edits) length += replacement.length - (end - start);
  const spliced = Buffer.allocUnsafe(Math.max(0, length));
  let read = 0;
  let written = 0;
  for (const { start, end, replacement } of edits) {
    if (start < read || end < start || end > bytes.length) throw new Error(`edit [${start}, ${end}) is out of order`);
    written = put(spliced, written, bytes, read, start);
    written = put(spliced, written, replacement, 0, replacement.length);
    read = end;
  }
  put(spliced, written, bytes, read, bytes.length);
  return spliced;
}

/** Fewer bytes are copied faster one by one than by a call into native code. */
const SHORT_BYTES = 48;

/** Copies a part of `bytes`; returns the offset after it. */
function put(target: Buffer, at: number, bytes: Buffer, start: number, end: number): number {
  if (end - start >= SHORT_BYTES) return at + bytes.copy(target, at, start, end);
  for (let index = start; index < end; index++) target[at + index - start] = bytes[index] as number; // index < end
  return at + end - start;
}

/** The JSON token of an id. */
export function encodeId(id: JsonRpcId): Buffer {
  return typeof id === 'number' ? encodeDigits(String(id)) : Buffer.from(JSON.stringify(id), 'utf8');
}

function encodeDigits(digits: string): Buffer {
  const bytes = Buffer.allocUnsafe(digits.length);
  for (let index = 0; index < digits.length; index++) bytes[index] = digits.charCodeAt(index);
  return bytes;
}

/**
 * Copies the frame's id token as written, so that keeping the token does not keep the message. Throws without an id.
 */
export function idToken(frame: Frame): Buffer {
  if (frame.idStart === -1) throw new Error(`a ${frame.kind} without an id has no id token`);
  const { bytes, idStart, idEnd } = frame;
  const token = Buffer.allocUnsafe(idEnd - idStart);
  put(token, 0, bytes, idStart, idEnd);
  return token;
}

/**
 * Sets the message's id to a value, or to a raw token that is kept byte for byte. An error without an id gets one; a
 * notification cannot have one and throws. A message that already has this token is returned unchanged.
 */
export function withId(frame: Frame, id: JsonRpcId | Buffer): Frame {
  if (frame.kind === 'notification') throw new Error('a notification has no id');
  if (Buffer.isBuffer(id) && hasIdToken(frame, id)) return frame;
  const token = Buffer.isBuffer(id) ? id : encodeId(id);
  const decoded = Buffer.isBuffer(id) ? decodeToken(id) : id;
  return frame.idStart === -1 ? insertId(frame, token, decoded) : replaceId(frame, token, decoded);
}

/** Returns false for a number not written as a plain integer, which some parsers read as another id. */
export function hasPlainId({ bytes, id, idStart, idEnd }: Frame): boolean {
  if (typeof id !== 'number') return true;
  for (let at = idStart; at < idEnd; at++) {
    const byte = bytes[at] as number; // within the token
    if (byte !== MINUS && (byte < DIGIT_0 || byte > DIGIT_9)) return false;
  }
  return true;
}

function hasIdToken({ bytes, idStart, idEnd }: Frame, token: Buffer): boolean {
  return (
    idEnd - idStart === token.length && idStart !== -1 && bytes.compare(token, 0, token.length, idStart, idEnd) === 0
  );
}

function replaceId(frame: Frame, token: Buffer, id: JsonRpcId): Frame {
  const { kind, method, idStart, idEnd, payloadStart } = frame;
  const shift = token.length - (idEnd - idStart);
  const edits = [{ start: idStart, end: idEnd, replacement: token }];
  const bytes = replaceSpans(frame.bytes, edits);
  const envelope = {
    kind,
    id,
    idStart,
    idEnd: idEnd + shift,
    method,
    payloadStart: payloadStart > idStart ? payloadStart + shift : payloadStart,
  };
  return copyOf(frame, bytes, envelope, frame.outlineOfEdited(bytes, edits));
}

/** Inserts the id after the opening brace. A message has at least one more member, so a comma follows. */
function insertId(frame: Frame, token: Buffer, id: JsonRpcId): Frame {
  const brace = frame.bytes.indexOf(OPEN_BRACE) + 1;
  const replacement = Buffer.concat([ID_KEY, token, Buffer.of(COMMA)]);
  const idStart = brace + ID_KEY.length;
  return copyOf(frame, replaceSpans(frame.bytes, [{ start: brace, end: brace, replacement }]), {
    kind: frame.kind,
    id,
    idStart,
    idEnd: idStart + token.length,
    method: frame.method,
    payloadStart: frame.payloadStart === -1 ? -1 : frame.payloadStart + replacement.length,
  });
}

/** Decodes an id token. Throws if it is invalid, because tokens come from checked messages. */
export function decodeToken(token: Buffer): JsonRpcId {
  const id = decodeId(token, 0, token.length);
  if (id === undefined) throw new Error('the token is not an id');
  return id;
}

/**
 * Applies edits, which must be sorted. An edit that covers the start of the payload removes it. An edit that replaces
 * the whole id token needs the new `id`; no other edit may touch the token.
 */
export function editFrame(frame: Frame, edits: readonly Edit[], id = frame.id): Frame {
  if (edits.length === 0) return frame;
  const { kind, method } = frame;
  const bytes = replaceSpans(frame.bytes, edits);
  const envelope = {
    kind,
    id,
    idStart: shifted(frame.idStart, edits),
    idEnd: shifted(frame.idEnd, edits),
    method,
    payloadStart: shifted(frame.payloadStart, edits),
  };
  return copyOf(frame, bytes, envelope, frame.outlineOfEdited(bytes, edits));
}

/** Creates an edited copy, which belongs to the same call. */
function copyOf(frame: Frame, bytes: Buffer, envelope: Envelope, outline?: Outline): Frame {
  const copy = new Frame(bytes, envelope, outline);
  copy.recordedCall = frame.recordedCall;
  return copy;
}

/** Returns the offset after the edits, or -1 if the offset was -1 or its byte is removed. */
function shifted(offset: number, edits: readonly Edit[]): number {
  if (offset === -1) return -1;
  let shift = 0;
  for (const { start, end, replacement } of edits) {
    if (start >= offset) break;
    if (end > offset) return -1;
    shift += replacement.length - (end - start);
  }
  return offset + shift;
}

const PARAMS_KEY = Buffer.from(',"params":');

/** Replaces the params, result or error of a message by this JSON text. The message must already have one of them. */
export function withPayload(frame: Frame, payload: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  if (payloadStart === -1) throw new Error(`a ${frame.kind} without a payload has none to replace`);
  const end = skipValue(bytes, payloadStart);
  return editFrame(frame, [{ start: payloadStart, end, replacement: payload }]);
}

/** Sets the params of a request or notification to this JSON text. */
export function withParams(frame: Frame, params: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  if (payloadStart !== -1) return withPayload(frame, params);
  const end = bytes.lastIndexOf(CLOSE_BRACE);
  const replacement = Buffer.concat([PARAMS_KEY, params]);
  const { kind, id, idStart, idEnd, method } = frame;
  return copyOf(frame, replaceSpans(bytes, [{ start: end, end, replacement }]), {
    kind,
    id,
    idStart,
    idEnd,
    method,
    payloadStart: end + PARAMS_KEY.length,
  });
}

/** Removes the params of a request or notification. */
export function withoutParams(frame: Frame): Frame {
  const editor = ObjectEditor.read(frame.bytes, 0, ['params']);
  editor?.remove('params');
  return editFrame(frame, editor?.edits() ?? []);
}
