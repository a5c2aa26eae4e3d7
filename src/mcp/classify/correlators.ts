/**
 * Finds and replaces the members of a message that hold the id or token of another message. No other file knows where
 * these members are.
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
/** The start of a Unicode escape. A key spelled with one is missed by a search for its plain bytes. */
const ESCAPE = Buffer.from('\\u');
/** Only the end of the key, because some servers write the slash before it as an escape. */
const SUBSCRIPTION_ID = Buffer.from('subscriptionId"');
const LETTER_N = 0x6e;
const LETTER_T = 0x54;
/** The usual first bytes of a progress notification's params. */
const LEADING_TOKEN = Buffer.from('{"progressToken":');

/** `params._meta.progressToken` of a request. */
export function findProgressToken(frame: Frame): Correlator | undefined {
  const { bytes, payloadStart, outline } = frame;
  if (payloadStart < 0 || outline?.mayHoldMeta === false) return undefined;
  // Most requests have no token. Without an outline, native searches over the bytes show that faster than a walk: a key
  // that is not spelled plainly has an escape.
  if (outline === undefined && !bytes.includes(PROGRESS_TOKEN, payloadStart) && !bytes.includes(ESCAPE, payloadStart)) {
    return undefined;
  }
  const meta = member(frame, frame.payloadStart, '_meta');
  return meta && decodeToken(frame.bytes, member(frame, meta.start, 'progressToken'));
}

/**
 * Finds what `findProgressToken` does, for a server that several clients share. The result is `unclear` if parsers
 * could read different tokens, or if the value has a type that some servers take for a number. A token that is not
 * replaced could be another client's.
 */
export function findSharedProgressToken(frame: Frame): Span | 'unclear' | undefined {
  const { bytes } = frame;
  const meta = findUnmistakable(frame, frame.payloadStart, '_meta');
  if (meta === undefined || meta === 'unclear') return meta;
  const token = findUnmistakable(frame, meta.start, 'progressToken');
  if (token === undefined || token === 'unclear') return token;
  // Only null starts with an n, and a null token means no token.
  if (bytes[token.start] === LETTER_N) return undefined;
  return isStringOrNumber(bytes[token.start]) ? token : 'unclear';
}

function isStringOrNumber(first: number | undefined): boolean {
  return first === QUOTE || first === MINUS || (first !== undefined && first >= DIGIT_0 && first <= DIGIT_9);
}

/** `params.requestId` of `notifications/cancelled`. */
export function findCanceledId(frame: Frame): Correlator | undefined {
  return correlator(frame, frame.payloadStart, 'requestId');
}

/**
 * Finds what `findCanceledId` does, for a server that several clients share. Returns undefined if parsers could read
 * different ids.
 */
export function findSharedCanceledId(frame: Frame): Correlator | undefined {
  const span = findUnmistakable(frame, frame.payloadStart, 'requestId');
  return span === 'unclear' ? undefined : decode(frame.bytes, span);
}

/** `params.progressToken` of `notifications/progress`. */
export function findProgressOf(frame: Frame): Correlator | undefined {
  return findLeadingToken(frame) ?? decodeToken(frame.bytes, member(frame, frame.payloadStart, 'progressToken'));
}

/** Returns true if the token is the first member of a progress notification's params. */
export function isLeadingToken({ payloadStart }: Frame, { start }: Correlator): boolean {
  return start === payloadStart + LEADING_TOKEN.length;
}

/**
 * Fast path of `findProgressOf` for params that start with the token, as most servers write them. Returns undefined if
 * a `T` or a backslash follows: only then can there be a second `progressToken`, and the slow path decides.
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

/** `params._meta["io.modelcontextprotocol/related-task"].taskId` of a message that a server sends within a task. */
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
 * Decodes a progress token. Unlike an id it may be an integer of any size and in any notation, and many servers send
 * 1e3 back as 1000. Tokens are therefore compared by value, rounded as most servers do.
 */
function decodeToken(bytes: Buffer, span: Span | undefined): Correlator | undefined {
  const exact = decode(bytes, span);
  if (exact !== undefined || span === undefined || !isStringOrNumber(bytes[span.start])) return exact;
  const value = Number(bytes.toString('latin1', span.start, span.end));
  return Number.isInteger(value) ? { start: span.start, end: span.end, value } : undefined;
}

/** Finds a member. A key that occurs twice counts as absent, because another parser may read the other value. */
function member({ bytes, outline }: Frame, objectStart: number, key: string): Span | undefined {
  if (objectStart < 0 || bytes[objectStart] !== OPEN_BRACE) return undefined;
  const span = findUniqueMember(bytes, objectStart, key, outline);
  return span === 'duplicate' ? undefined : span;
}

/** Integers with more digits may not be exact as a number. */
const MAX_DIGITS = 15;

/**
 * Returns the `progress` of a `notifications/progress`, or undefined if it is missing or no number. Parses JSON only if
 * the value is not a short integer.
 */
export function readProgress(frame: Frame): number | undefined {
  const { bytes, payloadStart, outline } = frame;
  const span = payloadStart === -1 ? undefined : findUniqueMember(bytes, payloadStart, 'progress', outline);
  const plain = typeof span === 'object' ? readDigits(bytes, span.start, span.end) : undefined;
  if (plain !== undefined) return plain;
  const progress = readField(frame, 'progress');
  return typeof progress === 'number' ? progress : undefined;
}

/** Returns undefined unless the value consists of at most `MAX_DIGITS` digits. */
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

// ---- Replacing ids and tokens

/** A request as the server receives it, with the data needed to restore its progress notifications. */
export interface RewrittenRequest {
  readonly frame: Frame;
  /** The progress token as the client wrote it. */
  readonly progressToken: Buffer | undefined;
}

/**
 * Rewrites a client's request for the shared link: `upstreamId` becomes its id and its progress token. Returns
 * undefined if its own progress token is ambiguous, because the server might then read another client's token.
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

/** A client's `notifications/cancelled` with another request id. Undefined if it names no id, or an ambiguous one. */
export function rewriteClientCanceled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replace(frame, findSharedCanceledId(frame), encodeId(id));
}

/** A server's `notifications/cancelled` with another request id. Undefined if it names no id. */
export function rewriteServerCanceled(frame: Frame, id: JsonRpcId): Frame | undefined {
  return replace(frame, findCanceledId(frame), encodeId(id));
}

/** A `notifications/progress` with another token, given as JSON bytes. `found` is the notification's own token. */
export function rewriteProgress(frame: Frame, token: Buffer, found = findProgressOf(frame)): Frame | undefined {
  if (found === undefined || !isLeadingToken(frame, found)) return replace(frame, found, token);
  // The bytes before a leading token are known, so replacing it cannot change how the rest of the message is read.
  return editFrame(frame, [{ start: found.start, end: found.end, replacement: token }]);
}

/** A message of a subscription with the id of another `subscriptions/listen`, given as JSON bytes. */
export function rewriteSubscriptionId(frame: Frame, id: Buffer): Frame | undefined {
  return replace(frame, findSubscriptionId(frame), id);
}

function replace(frame: Frame, found: Span | undefined, replacement: Buffer): Frame | undefined {
  return found && edit(frame, { start: found.start, end: found.end, replacement });
}

/**
 * Replaces one value. Returns undefined if the result is no message anymore, which is possible because only the
 * envelope of a server's message is known to be valid JSON.
 */
function edit(frame: Frame, only: Edit): Frame | undefined {
  // A frame with a complete outline was scanned as a whole, so its other values can be located without another scan.
  if (frame.outline?.isComplete === true) return editFrame(frame, [only]);
  const bytes = replaceSpans(frame.bytes, [only]);
  const envelope = scanEnvelope(bytes);
  return envelope && new Frame(bytes, envelope);
}

/** Copies the bytes, because a subarray would keep the whole message in memory. */
function copyOf(frame: Frame, { start, end }: Span): Buffer {
  return Buffer.from(frame.bytes.subarray(start, end));
}
