import { decodeId } from './decode-id.ts';
import { CLOSE_BRACE, COMMA, DIGIT_0, DIGIT_9, MINUS, OPEN_BRACE } from './json/ascii.ts';
import { editedOutline } from './json/edited-outline.ts';
import { ObjectEditor } from './json/object-editor.ts';
import { type Outline, outlineOf } from './json/outline.ts';
import { parseJson } from './json/parse-json.ts';
import { type Edit, skipValue } from './json/scan-json.ts';

/** A JSON-RPC id as decoded. Fractions, null and integers beyond 2^53-1 are refused by the scanner. */
export type JsonRpcId = string | number;

/** An id that is a whole number written as a text, with the fraction that some languages print. */
const NUMERIC_TEXT = /^-?\d{1,16}(?:\.0{1,16})?$/;

/**
 * The id with the same value as the other JSON type: 5 for "5", "5" for 5. Some servers, and gateways before them, return
 * ids so, and the clients of the official SDKs take them. Undefined: the id has no such form.
 */
export function idOfOtherType(id: JsonRpcId): JsonRpcId | undefined {
  if (typeof id === 'number') return String(id);
  if (!NUMERIC_TEXT.test(id)) return undefined;
  const value = Number(id);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** An id or token where only numbers were given: some servers return them as texts. */
export function asNumber(id: JsonRpcId | undefined): JsonRpcId | undefined {
  return typeof id === 'string' ? idOfOtherType(id) : id;
}

/** Does a response with this id answer the request with that one, exactly or by value? */
export function answersId(id: JsonRpcId | undefined, requested: JsonRpcId | undefined): boolean {
  return id === requested || (id !== undefined && idOfOtherType(id) === requested);
}

export type FrameKind = 'request' | 'notification' | 'result' | 'error';

/** What the envelope scan found: offsets into the bytes, nothing copied. -1 stands for "absent". */
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

/** To go over a shorter message again costs less than to note where its members stand. */
const WORTH_AN_OUTLINE = 16 * 1024;

/**
 * One JSON-RPC message as it travels through the bridge: its bytes, untouched, plus what the envelope scan found.
 * The bytes hold exactly one JSON object without CR or LF, so the same bytes are a line on stdio, the data of one
 * event on SSE and a body on HTTP. Frames are immutable; edits make a new frame.
 */
export class Frame {
  readonly bytes: Buffer;
  readonly kind: FrameKind;
  readonly id: JsonRpcId | undefined;
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string | undefined;
  readonly payloadStart: number;
  /** `unread`: nobody has asked for it yet. */
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
   * Where its members stand. Of a message that was read in full it was made on the way; of another it is made once where
   * that is worth it. Undefined: its members are found by walking.
   */
  get outline(): Outline | undefined {
    if (this.#outline === 'unread') {
      this.#outline = this.bytes.length < WORTH_AN_OUTLINE ? undefined : outlineOf(this.bytes);
    }
    return this.#outline;
  }

  /**
   * The outline of the message that these edits made of this one, where this one's was needed already and the edits leave
   * its members where they are. Undefined: it is made when somebody asks for it.
   */
  outlineOfEdited(edited: Buffer, edits: readonly Edit[]): Outline | undefined {
    const outline = this.#outline;
    if (outline === undefined || outline === 'unread' || edited.length < WORTH_AN_OUTLINE) return undefined;
    return editedOutline(outline, edited, edits);
  }

  /** A response of either kind. */
  get isResponse(): boolean {
    return this.kind === 'result' || this.kind === 'error';
  }

  /** The whole message parsed, anew at each call. For the few messages the bridge must read. */
  json(): unknown {
    return parseJson(this.bytes);
  }
}

// ---- Edits replace bytes of a message: what is not edited stays as it was written.

const ID_KEY = Buffer.from('"id":');

/** A copy with all edits made. They must be sorted and may touch, but not overlap; anything else throws. */
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

/** Fewer bytes than this are copied sooner one by one than by a call into native code. */
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

/** A copy of the frame's id token as it was written, so that keeping it does not keep the message. Throws without id. */
export function idToken(frame: Frame): Buffer {
  if (frame.idStart === -1) throw new Error(`a ${frame.kind} without an id has no id token`);
  const { bytes, idStart, idEnd } = frame;
  const token = Buffer.allocUnsafe(idEnd - idStart);
  put(token, 0, bytes, idStart, idEnd);
  return token;
}

/**
 * Puts another id into the message: a value, or a raw token to put back byte-exact. An error without id gets one; a
 * notification cannot have one and throws. A message that has this very token already is returned as it is.
 */
export function withId(frame: Frame, id: JsonRpcId | Buffer): Frame {
  if (frame.kind === 'notification') throw new Error('a notification has no id');
  if (Buffer.isBuffer(id) && hasIdToken(frame, id)) return frame;
  const token = Buffer.isBuffer(id) ? id : encodeId(id);
  const decoded = Buffer.isBuffer(id) ? decodeToken(id) : id;
  return frame.idStart === -1 ? insertId(frame, token, decoded) : replaceId(frame, token, decoded);
}

/** False: the id is a number that is not written as a plain integer, which some parsers take for another id. */
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
  return new Frame(bytes, envelope, frame.outlineOfEdited(bytes, edits));
}

/** Right after the opening brace: a message has at least one more member, so a comma follows. */
function insertId(frame: Frame, token: Buffer, id: JsonRpcId): Frame {
  const brace = frame.bytes.indexOf(OPEN_BRACE) + 1;
  const replacement = Buffer.concat([ID_KEY, token, Buffer.of(COMMA)]);
  const idStart = brace + ID_KEY.length;
  return new Frame(replaceSpans(frame.bytes, [{ start: brace, end: brace, replacement }]), {
    kind: frame.kind,
    id,
    idStart,
    idEnd: idStart + token.length,
    method: frame.method,
    payloadStart: frame.payloadStart === -1 ? -1 : frame.payloadStart + replacement.length,
  });
}

/** What an id token means. Throws when it is none: tokens come from checked messages. */
export function decodeToken(token: Buffer): JsonRpcId {
  const id = decodeId(token, 0, token.length);
  if (id === undefined) throw new Error('the token is not an id');
  return id;
}

/**
 * Edits as `replaceSpans` takes them. One that covers the start of the payload removes it; one that replaces the whole
 * id token comes with the new `id`, and no other may touch it.
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
  return new Frame(bytes, envelope, frame.outlineOfEdited(bytes, edits));
}

/** Where an offset comes to lie; -1 when it is gone or was none. */
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

/** Replaces the params, result or error of a message by this JSON text. The message must have one of them already. */
export function withPayload(frame: Frame, payload: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  if (payloadStart === -1) throw new Error(`a ${frame.kind} without a payload has none to replace`);
  const end = skipValue(bytes, payloadStart);
  return editFrame(frame, [{ start: payloadStart, end, replacement: payload }]);
}

/** Gives a request or notification these params, which are JSON text. */
export function withParams(frame: Frame, params: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  if (payloadStart !== -1) return withPayload(frame, params);
  const end = bytes.lastIndexOf(CLOSE_BRACE);
  const replacement = Buffer.concat([PARAMS_KEY, params]);
  const { kind, id, idStart, idEnd, method } = frame;
  return new Frame(replaceSpans(bytes, [{ start: end, end, replacement }]), {
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
