/**
 * The places inside a message that hold an id or a token of another message: finds them, and replaces what they hold.
 * Nothing outside this file knows where they are.
 */

import { decodeId } from '../../wire/decode-id.ts';
import { editFrame, encodeId, Frame, type JsonRpcId, replaceSpans } from '../../wire/frame.ts';
import { BACKSLASH, DIGIT_0, DIGIT_9, MINUS, OPEN_BRACE, QUOTE } from '../../wire/json/ascii.ts';
import { findUniqueMember, findUnmistakable } from '../../wire/json/outline.ts';
import { type Edit, type Span, skipValue } from '../../wire/json/scan-json.ts';
import { scanEnvelope } from '../../wire/scan-envelope.ts';
import { META_RELATED_TASK, META_SUBSCRIPTION_ID } from '../vocabulary/meta.ts';
import { readField } from '../vocabulary/payload.ts';

/** A correlator's token in the frame's bytes, with its decoded value. */
export interface Correlator {
  readonly start: number;
  readonly end: number;
  readonly value: JsonRpcId;
}

const PROGRESS_TOKEN = Buffer.from('"progressToken"');
/** How a letter is spelled otherwise. */
const ESCAPE = Buffer.from('\\u');
/** The end of its key: some servers write the slash before it as an escape. */
const SUBSCRIPTION_ID = Buffer.from('subscriptionId"');
const LETTER_N = 0x6e;
const LETTER_T = 0x54;
/** How the params of a progress notification start. */
const LEADING_TOKEN = Buffer.from('{"progressToken":');

/** `params._meta.progressToken` of a request. */
export function findProgressToken(frame: Frame): Correlator | undefined {
  const { bytes, payloadStart, outline } = frame;
  if (payloadStart < 0 || outline?.mayHoldMeta === false) return undefined;
  // Most requests have none. Where it takes a walk to find that out, native searches over the bytes say so at once: a key
  // that is not spelled plainly has an escape.
  if (outline === undefined && !bytes.includes(PROGRESS_TOKEN, payloadStart) && !bytes.includes(ESCAPE, payloadStart)) {
    return undefined;
  }
  const meta = member(frame, frame.payloadStart, '_meta');
  return meta && decodeToken(frame.bytes, member(frame, meta.start, 'progressToken'));
}

/**
 * Finds what `findProgressToken` does for a server that several clients share: it must be certain which token it will read,
 * because one that was not replaced may be that of another client. `unclear`: it is not certain, or the value is of a
 * type that some take for a number.
 */
export function findSharedProgressToken(frame: Frame): Span | 'unclear' | undefined {
  const { bytes } = frame;
  const meta = findUnmistakable(frame, frame.payloadStart, '_meta');
  if (meta === undefined || meta === 'unclear') return meta;
  const token = findUnmistakable(frame, meta.start, 'progressToken');
  if (token === undefined || token === 'unclear') return token;
  // Only null starts with an n, and means the same as nothing.
  if (bytes[token.start] === LETTER_N) return undefined;
  return isStringOrNumber(bytes[token.start]) ? token : 'unclear';
}

function isStringOrNumber(first: number | undefined): boolean {
  return first === QUOTE || first === MINUS || (first !== undefined && first >= DIGIT_0 && first <= DIGIT_9);
}

/** `params.requestId` of `notifications/cancelled`. */
export function findCancelledId(frame: Frame): Correlator | undefined {
  return correlator(frame, frame.payloadStart, 'requestId');
}

/** Finds what `findCancelledId` does for a server that several clients share: undefined unless it is certain which id it reads. */
export function findSharedCancelledId(frame: Frame): Correlator | undefined {
  const span = findUnmistakable(frame, frame.payloadStart, 'requestId');
  return span === 'unclear' ? undefined : decode(frame.bytes, span);
}

/** `params.progressToken` of `notifications/progress`. */
export function findProgressOf(frame: Frame): Correlator | undefined {
  return findLeadingToken(frame) ?? decodeToken(frame.bytes, member(frame, frame.payloadStart, 'progressToken'));
}

/** Is this the token of a progress notification that starts with it? */
export function isLeadingToken({ payloadStart }: Frame, { start }: Correlator): boolean {
  return start === payloadStart + LEADING_TOKEN.length;
}

/**
 * Finds what `findProgressOf` does where the token comes first in params, as most servers write it, and nothing after it could be
 * another one: that would need its `T`, or a backslash to spell it otherwise. Undefined: it takes a closer look.
 */
function findLeadingToken({ bytes, payloadStart }: Frame): Correlator | undefined {
  const start = payloadStart + LEADING_TOKEN.length;
  for (let index = 0; index < LEADING_TOKEN.length; index++) {
    if (bytes[payloadStart + index] !== LEADING_TOKEN[index]) return undefined;
  }
  const end = skipValue(bytes, start);
  if (end === -1) return undefined;
  for (let at = end; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === LETTER_T || byte === BACKSLASH) return undefined;
  }
  return decodeToken(bytes, { start, end });
}

/** `_meta["io.modelcontextprotocol/subscriptionId"]` of a notification, or of the answer that ends a subscription. */
export function findSubscriptionId(frame: Frame): Correlator | undefined {
  if (frame.payloadStart < 0 || !frame.bytes.includes(SUBSCRIPTION_ID, frame.payloadStart)) return undefined;
  const meta = member(frame, frame.payloadStart, '_meta');
  return meta && correlator(frame, meta.start, META_SUBSCRIPTION_ID);
}

/** `params._meta["io.modelcontextprotocol/related-task"].taskId` of what a server says within a task. */
export function findRelatedTask(frame: Frame): JsonRpcId | undefined {
  const meta = member(frame, frame.payloadStart, '_meta');
  const related = meta && member(frame, meta.start, META_RELATED_TASK);
  return related && correlator(frame, related.start, 'taskId')?.value;
}

function correlator(frame: Frame, objectStart: number, key: string): Correlator | undefined {
  return decode(frame.bytes, member(frame, objectStart, key));
}

function decode(bytes: Buffer, span: Span | undefined): Correlator | undefined {
  const value = span && decodeId(bytes, span.start, span.end);
  return span === undefined || value === undefined ? undefined : { start: span.start, end: span.end, value };
}

/**
 * A progress token. Unlike ids these may be integers of any size, and any way to write a number: 1e3 comes back from many
 * servers as 1000. So it is known by its value, rounded as most servers would.
 */
function decodeToken(bytes: Buffer, span: Span | undefined): Correlator | undefined {
  const exact = decode(bytes, span);
  if (exact !== undefined || span === undefined || !isStringOrNumber(bytes[span.start])) return exact;
  const value = Number(bytes.toString('latin1', span.start, span.end));
  return Number.isInteger(value) ? { start: span.start, end: span.end, value } : undefined;
}

/** A key that occurs twice is treated as absent: whoever reads the other one must not be led astray. */
function member({ bytes, outline }: Frame, objectStart: number, key: string): Span | undefined {
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return undefined;
  const span = findUniqueMember(bytes, objectStart, key, outline);
  return span === 'duplicate' ? undefined : span;
}

/** Longer integers may not be exact. */
const MAX_DIGITS = 15;

/** How far a `notifications/progress` says its call has come; undefined: it does not. Parses only if it must. */
export function readProgress(frame: Frame): number | undefined {
  const { bytes, payloadStart, outline } = frame;
  const span = payloadStart === -1 ? undefined : findUniqueMember(bytes, payloadStart, 'progress', outline);
  const plain = typeof span === 'object' ? readDigits(bytes, span.start, span.end) : undefined;
  if (plain !== undefined) return plain;
  const progress = readField(frame, 'progress');
  return typeof progress === 'number' ? progress : undefined;
}

/** Undefined: it is something else than a short row of digits. */
function readDigits(bytes: Buffer, start: number, end: number): number | undefined {
  if (end - start > MAX_DIGITS) return undefined;
  let value = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number; // within the value
    if (byte < DIGIT_0 || byte > DIGIT_9) return undefined;
    value = value * 10 + (byte - DIGIT_0);
  }
  return value;
}

// ---- Replacing them

/** A request as the server gets it, and what it takes to turn its answers back. */
export interface RewrittenRequest {
  readonly frame: Frame;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
}

/**
 * One client's request under an id of the shared link; the same number is its progress token. Undefined: its own token
 * cannot be told for sure, and the server might read that of another client.
 */
export function rewriteRequest(frame: Frame, upstreamId: number): RewrittenRequest | undefined {
  const token = findSharedProgressToken(frame);
  if (token === 'unclear') return undefined;
  const replacement = encodeId(upstreamId);
  const idEdit = { start: frame.idStart, end: frame.idEnd, replacement };
  if (token === undefined) return { frame: editFrame(frame, [idEdit], upstreamId), progressToken: undefined };
  const tokenEdit = { start: token.start, end: token.end, replacement };
  const edits = token.start < frame.idStart ? [tokenEdit, idEdit] : [idEdit, tokenEdit];
  return { frame: editFrame(frame, edits, upstreamId), progressToken: copyOf(frame, token) };
}

/** A client's `notifications/cancelled` about another id. Undefined: it names none, or not one for sure. */
export function rewriteClientCancelled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replace(frame, findSharedCancelledId(frame), encodeId(id));
}

/** A server's `notifications/cancelled` about another id. Undefined: it names none. */
export function rewriteServerCancelled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replace(frame, findCancelledId(frame), encodeId(id));
}

/** `notifications/progress` under another token, given as its bytes. `found`: where its own stands. */
export function rewriteProgress(frame: Frame, token: Buffer, found = findProgressOf(frame)): Frame | undefined {
  if (found === undefined || !isLeadingToken(frame, found)) return replace(frame, found, token);
  // Nothing stands before it that could be read in two ways, so all else is found where it was.
  return editFrame(frame, [{ start: found.start, end: found.end, replacement: token }]);
}

/** What a subscription brings, under the id of another `subscriptions/listen`, given as its bytes. */
export function rewriteSubscriptionId(frame: Frame, id: Buffer): Frame | undefined {
  return replace(frame, findSubscriptionId(frame), id);
}

function replace(frame: Frame, found: Span | undefined, replacement: Buffer): Frame | undefined {
  return found && edit(frame, { start: found.start, end: found.end, replacement });
}

/** Undefined: no message any more. Of a server's message only the envelope is known to be JSON. */
function edit(frame: Frame, only: Edit): Frame | undefined {
  // A message that has an outline was walked over as a whole, so another value in it leaves the others where they are.
  if (frame.outline?.isComplete === true) return editFrame(frame, [only]);
  const bytes = replaceSpans(frame.bytes, [only]);
  const envelope = scanEnvelope(bytes);
  return envelope && new Frame(bytes, envelope);
}

/** A copy: keeping it must not keep the message. */
function copyOf(frame: Frame, { start, end }: Span): Buffer {
  return Buffer.from(frame.bytes.subarray(start, end));
}
