import { isUtf8 } from 'node:buffer';
import { Frame, type JsonRpcId } from './frame.ts';
import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, SPACE } from './json/ascii.ts';
import { checkJson, type JsonLimits } from './json/check-json.ts';
import { MAX_MEMBERS, Outline, walkOutline } from './json/outline.ts';
import { isWhitespace, skipValue, skipWhitespace, toOneLine } from './json/scan-json.ts';
import { type EnvelopeFault, scanEnvelope, scanStrictEnvelope } from './scan-envelope.ts';

/** Limits for one body or line. A batch's own array counts as a level and as a value. */
export interface ReadLimits extends JsonLimits {
  /** Limit of messages in one batch. */
  readonly maxBatch: number;
  /**
   * Accepts messages that parsers may read differently, as from a server. A client's message must be unambiguous, or
   * the client could have one message checked and another one executed.
   */
  readonly isLenient?: true;
}

/**
 * Limits for a server's body or line. The number of values is unlimited, because the delay only affects those who chose
 * the server.
 */
export const SERVER_LIMITS: ReadLimits = {
  maxDepth: 1000,
  maxBatch: 1000,
  maxValues: Number.POSITIVE_INFINITY,
  isLenient: true,
};

/**
 * `parse`: the bytes are not JSON. `message`: JSON, but no acceptable message. `batch`: an array that is empty or too
 * long.
 */
export type ReadFault = 'parse' | 'message' | 'batch';

export type ReadResult =
  | { readonly kind: 'message'; readonly frame: Frame }
  | { readonly kind: 'batch'; readonly items: readonly (Frame | EnvelopeFault)[] }
  | {
      readonly kind: 'fault';
      readonly fault: ReadFault;
      /** The problem and the expected form in English, without quoting the message. */
      readonly reason: string;
      /** The message's id, if it could be read. */
      readonly id: JsonRpcId | undefined;
    };

/**
 * Reads a body or line of an untrusted client. The result is valid JSON in valid UTF-8, on one line, with an envelope
 * that all parsers read alike. Frames are views of `bytes`, which the caller must not use anymore: raw newlines
 * between tokens are overwritten with spaces. Never throws.
 */
export function readMessage(bytes: Buffer, limits: ReadLimits): ReadResult {
  const text = trimText(bytes);
  if (text.length === 0) return fault('parse', 'the message is empty');
  if (!isUtf8(text)) return fault('parse', 'the message is not valid UTF-8');
  const outline = new Outline(text);
  const check = checkJson(text, limits, outline);
  if (check === 'too-deep') {
    return fault('message', `the message nests deeper than ${limits.maxDepth} arrays and objects`);
  }
  if (check === 'too-many')
    return fault('message', `the message holds more than ${limits.maxValues} values; send large data as one string`);
  if (check === 'invalid') return fault('parse', 'the message is not valid JSON');
  toOneLine(text);
  if (text[0] === OPEN_BRACKET) return readBatch(text, limits);
  if (text[0] !== OPEN_BRACE) return fault('message', 'the JSON text is a plain value; expected an object or an array');
  const frame = readFrame(text, outline, limits);
  if (frame instanceof Frame) return { kind: 'message', frame };
  return { kind: 'fault', fault: 'message', reason: frame.fault, id: frame.id };
}

function fault(kind: ReadFault, reason: string): ReadResult {
  return { kind: 'fault', fault: kind, reason, id: undefined };
}

/** Removes a byte order mark and surrounding whitespace. */
export function trimText(bytes: Buffer): Buffer {
  const hasBom = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const start = skipWhitespace(bytes, hasBom ? 3 : 0);
  let end = bytes.length;
  while (end > start && isWhitespace(bytes[end - 1])) end--;
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}

const TOO_MANY_MEMBERS = `the message, its params or result, and the _meta of those have more than ${MAX_MEMBERS} members together`;

function readFrame(object: Buffer, outline: Outline, { isLenient }: ReadLimits): Frame | EnvelopeFault {
  const envelope = scanStrictEnvelope(object, outline);
  if (isLenient && (!outline.isComplete || 'fault' in envelope)) {
    const read = scanEnvelope(object);
    if (read !== undefined) return new Frame(object, read);
  }
  if (!outline.isComplete) return { fault: TOO_MANY_MEMBERS, id: envelope.id };
  return 'fault' in envelope ? envelope : new Frame(object, envelope, outline);
}

function readBatch(array: Buffer, limits: ReadLimits): ReadResult {
  const { maxBatch } = limits;
  const items: (Frame | EnvelopeFault)[] = [];
  let at = skipWhitespace(array, 1);
  if (array[at] === CLOSE_BRACKET) return fault('batch', 'the batch is empty; expected at least one message');
  while (at < array.length) {
    if (items.length === maxBatch) return fault('batch', `the batch holds more than ${maxBatch} messages`);
    const item = readItem(array, at, limits);
    items.push(item.read);
    const { end } = item;
    const next = skipWhitespace(array, end);
    if (array[next] !== COMMA) break;
    at = skipWhitespace(array, next + 1);
  }
  return { kind: 'batch', items };
}

function readItem(array: Buffer, start: number, limits: ReadLimits): { read: Frame | EnvelopeFault; end: number } {
  if (array[start] !== OPEN_BRACE) {
    return { read: { fault: 'an item of the batch is not an object', id: undefined }, end: skipValue(array, start) };
  }
  const { outline, end: length } = walkOutline(array.subarray(start));
  // The walk ends early if there are too many members.
  const end = length === -1 ? skipValue(array, start) : start + length;
  return { read: readFrame(array.subarray(start, end), outline, limits), end };
}

/**
 * Separates messages that arrived as one line: some servers write from several threads and sometimes miss a line end
 * between two messages. If several clients share the server, the second message may be another client's. Undefined for
 * a single message, the usual case. Text that is no message is dropped.
 */
export function separateMessages({ bytes }: Frame): readonly Frame[] | undefined {
  if (!hasSeam(bytes) || skipValue(bytes, 0) === bytes.length) return undefined;
  const frames: Frame[] = [];
  let start = 0;
  while (bytes[start] === OPEN_BRACE) {
    const end = skipValue(bytes, start);
    if (end === -1) break;
    const text = bytes.subarray(start, end);
    const envelope = scanEnvelope(text);
    if (envelope !== undefined) frames.push(new Frame(text, envelope));
    start = skipWhitespace(bytes, end);
  }
  return frames;
}

const NEAR_BYTES = 32;

/**
 * In JSON `}{` and `} {` occur only inside strings; a lost line end may have become a space. indexOf finds the first
 * `}` of each group.
 */
function hasSeam(bytes: Buffer): boolean {
  const last = bytes.length - 1;
  for (let at = bytes.indexOf(CLOSE_BRACE); at !== -1 && at < last; at = bytes.indexOf(CLOSE_BRACE, at)) {
    // Braces tend to come in groups, so a loop over the next bytes is faster than an indexOf for each brace.
    for (const near = Math.min(at + NEAR_BYTES, last); at < near; at++) {
      if (bytes[at] !== CLOSE_BRACE) continue;
      const next = bytes[at + 1] === SPACE ? bytes[at + 2] : bytes[at + 1];
      if (next === OPEN_BRACE) return true;
    }
  }
  return false;
}
