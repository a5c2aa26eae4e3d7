/** Edits bytes of a message instead of parsing and printing it anew: what is not edited stays as it was written. */

import { decodeId } from './envelope-members.ts';
import { Frame, type JsonRpcId } from './frame.ts';
import { COMMA, OPEN_BRACE } from './json/ascii.ts';
import type { Edit } from './json/scan-json.ts';

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
