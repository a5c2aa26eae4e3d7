/** Reads the envelope of one JSON-RPC message and leaves its payload alone. */
import {
  classifyKey,
  EnvelopeDraft,
  type EnvelopeKey,
  findLookAlike,
  isNullToken,
  isPayloadKey,
  type PayloadKey,
} from './envelope-members.ts';
import type { Envelope, FrameKind, JsonRpcId } from './frame.ts';
import { CLOSE_BRACE, COLON, COMMA, DIGIT_0, DIGIT_9, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json/ascii.ts';
import { type Outline, visitMembers } from './json/outline.ts';
import { isWhitespace, MemberCursor, skipValue, skipWhitespace } from './json/scan-json.ts';

const LETTER_N = 0x6e;

/** Longer strings at the tail are no ids and end the walk back. */
const MAX_TAIL_STRING_BYTES = 256;

/** Why a message was refused. */
export interface EnvelopeFault {
  /** What was wrong and what was expected, in English, without quoting the message. */
  readonly fault: string;
  /** The message's id where it could be read, so that the sender can be answered. */
  readonly id: JsonRpcId | undefined;
}

/** What could be read from a message of which only the ends were kept. */
export interface RecoveredEnvelope {
  readonly kind: FrameKind | undefined;
  readonly id: JsonRpcId | undefined;
  readonly method: string | undefined;
}

/**
 * The fast scan, for a line from a server that is trusted to write JSON. It stops as soon as nothing further can
 * change the answer, so whatever follows is not looked at. Undefined: not a JSON-RPC message (a log line, an array).
 */
export function scanEnvelope(bytes: Buffer): Envelope | undefined {
  return scanMembers(bytes, new EnvelopeDraft(), new MemberCursor(bytes, 0));
}

/** `draft` is empty, `members` are those of the message. */
function scanMembers(bytes: Buffer, draft: EnvelopeDraft, members: MemberCursor): Envelope | undefined {
  if (bytes[0] !== OPEN_BRACE || bytes[bytes.length - 1] !== CLOSE_BRACE) return undefined;
  let tailIsRead = false;
  let none: { readonly key: PayloadKey; readonly start: number } | undefined;
  while (members.next()) {
    const key = classifyKey(bytes, members.keyStart, members.keyEnd);
    if (key === undefined) continue;
    if (isPayloadKey(key)) {
      // Some servers write both outcomes, the one that is none as null. It counts when there is no other.
      if (bytes[members.valueStart] === LETTER_N) {
        none ??= { key, start: members.valueStart };
        continue;
      }
      draft.takePayload(key, members.valueStart);
      if (!draft.isComplete && !tailIsRead) {
        tailIsRead = true;
        scanTail(bytes, members.valueStart, draft);
      }
    } else {
      const valueEnd = members.valueEnd();
      if (valueEnd === -1) return undefined;
      const isTaken = draft.takeSimple(key, bytes, members.valueStart, valueEnd);
      if (!isTaken && !(key === 'id' && draft.takeLooseId(bytes, members.valueStart, valueEnd))) return undefined;
    }
    if (draft.isComplete) break;
  }
  if (!draft.isComplete && members.objectEnd !== bytes.length) return undefined;
  if (draft.payloadStart === -1 && none !== undefined) draft.takePayload(none.key, none.start);
  const kind = draft.kind;
  return kind === undefined ? undefined : draft.toEnvelope(kind);
}

/**
 * Reads simple members backwards from the final `}`, not past `floor`. Many servers write `"result":…` first and
 * `"jsonrpc":"2.0","id":5` last; this spares the walk over a result of a megabyte to get there.
 *
 * Why it is sound, given valid JSON: the final `}` closes the outer object, so the token before it ends that object's
 * last member. A `"` there closes a string. A quote inside a string always has a backslash before it, the opening quote
 * never has: before that stand `:` or `,` and whitespace. So if one of those precedes the nearest quote, that quote
 * opens the string; if not, the walk ends. What precedes is then a key, found likewise, and before its `,` the end of
 * the member before, again of the outer object. The walk also ends at any value that is no short string or plain
 * number and at any other key. Wherever it ends, the forward walk decides what is still open.
 */
function scanTail(bytes: Buffer, floor: number, draft: EnvelopeDraft): void {
  let at = skipWhitespaceBack(bytes, bytes.length - 2);
  while (at > floor) {
    const valueEnd = at + 1;
    const valueStart = bytes[at] === QUOTE ? openingQuote(bytes, at, floor) : digitsStart(bytes, at, floor);
    if (valueStart === -1) return;
    at = skipWhitespaceBack(bytes, valueStart - 1);
    if (bytes[at] !== COLON) return;
    at = skipWhitespaceBack(bytes, at - 1);
    if (bytes[at] !== QUOTE) return;
    const keyEnd = at + 1;
    const keyStart = openingQuote(bytes, at, floor);
    if (keyStart === -1) return;
    at = skipWhitespaceBack(bytes, keyStart - 1);
    if (bytes[at] !== COMMA) return;
    const key = classifyKey(bytes, keyStart, keyEnd);
    if (key === undefined || isPayloadKey(key)) return;
    if (!draft.takeSimple(key, bytes, valueStart, valueEnd)) return;
    at = skipWhitespaceBack(bytes, at - 1);
  }
}

function skipWhitespaceBack(bytes: Buffer, pos: number): number {
  let at = pos;
  while (isWhitespace(bytes[at])) at--;
  return at;
}

/** The nearest quote before the closing one; -1 when there is none near. */
function openingQuote(bytes: Buffer, closing: number, floor: number): number {
  const last = Math.max(floor, closing - MAX_TAIL_STRING_BYTES);
  let at = closing - 1;
  while (at > last && bytes[at] !== QUOTE) at--;
  return at > last ? at : -1;
}

/** The start of the digits that end at `last`; -1 when there are none. */
function digitsStart(bytes: Buffer, last: number, floor: number): number {
  let at = last;
  while (at > floor && isDigit(bytes[at])) at--;
  return at === last ? -1 : at + 1;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9;
}

/** Used by one scan after the other: none is interrupted by another. */
const STRICT_DRAFT = new EnvelopeDraft();

/**
 * The full scan, for one object of an untrusted client that is known to be valid JSON. Reads the whole top level, so
 * that whoever parses the same bytes later cannot see another message than the one that was checked.
 */
export function scanStrictEnvelope(bytes: Buffer, outline?: Outline): Envelope | EnvelopeFault {
  const draft = STRICT_DRAFT;
  draft.reset();
  const seen: EnvelopeKey[] = [];
  let fault: string | undefined;
  const end = visitMembers(bytes, 0, outline, (keyStart, keyEnd, valueStart, valueEnd) => {
    const key = classifyKey(bytes, keyStart, keyEnd);
    if (key === undefined) {
      const like = findLookAlike(bytes, keyStart, keyEnd);
      if (like !== undefined) fault ??= `a member can be taken for "${like}"; expected names in lower case only`;
      return true;
    }
    if (seen.includes(key)) {
      fault ??= `"${key}" occurs twice; expected each member once`;
      if (key === 'id') draft.id = undefined;
      return true;
    }
    seen.push(key);
    if (valueEnd === -1) return false;
    if (isPayloadKey(key)) {
      draft.takePayload(key, valueStart);
      fault ??= faultOfPayload(key, bytes[valueStart]);
    } else if (!draft.takeSimple(key, bytes, valueStart, valueEnd)) {
      fault ??= SIMPLE_FAULTS[key];
    }
    return true;
  });
  if (end === -1) fault ??= 'the message is not one JSON object';
  fault ??= faultOfMembers(seen, draft, bytes);
  const kind = draft.kind;
  if (fault === undefined && kind !== undefined) return draft.toEnvelope(kind);
  return { fault: fault ?? 'the message is neither a request, a notification nor a response', id: draft.id };
}

const ID_FAULT = '"id" must be a string or an integer within ±(2^53-1), written without fraction or exponent';

const SIMPLE_FAULTS = {
  jsonrpc: '"jsonrpc" must be the string "2.0"',
  id: ID_FAULT,
  method: '"method" must be a string',
} as const;

function faultOfPayload(key: PayloadKey, first: number | undefined): string | undefined {
  if (key === 'result' || first === OPEN_BRACE) return undefined;
  if (key === 'error') return '"error" must be an object';
  return first === OPEN_BRACKET ? undefined : '"params" must be an object or an array';
}

/** What is wrong with a set of members each of which is fine by itself. */
function faultOfMembers(seen: readonly EnvelopeKey[], draft: EnvelopeDraft, bytes: Buffer): string | undefined {
  if (!seen.includes('jsonrpc')) return '"jsonrpc" is missing; expected "jsonrpc":"2.0"';
  if (seen.includes('result') && seen.includes('error'))
    return 'both "result" and "error" are present; expected one of them';
  const isResponse = draft.outcome !== undefined;
  if (seen.includes('method') && isResponse)
    return `both "method" and "${draft.outcome}" are present; expected one of them`;
  if (!seen.includes('method') && !isResponse) return 'none of "method", "result" and "error" is present; expected one';
  if (seen.includes('params') && isResponse)
    return `both "params" and "${draft.outcome}" are present; expected one of them`;
  if (draft.outcome === 'result' && !seen.includes('id')) return '"id" is missing; a result must name its request';
  // [spec 2025-11-25 basic#requests] ids are strings or integers, never null; only an error may say null.
  if (draft.outcome !== 'error' && isNullToken(bytes, draft.idStart, draft.idEnd)) return ID_FAULT;
  return undefined;
}

/**
 * Tells what it can of an over-long message from its first and last bytes, so that the call it answers can be failed
 * instead of left waiting.
 */
export function recoverEnvelope(head: Buffer, tail: Buffer): RecoveredEnvelope {
  const draft = new EnvelopeDraft();
  scanHead(head, draft);
  const closing = skipWhitespaceBack(tail, tail.length - 1);
  const isWhole = tail[closing] === CLOSE_BRACE;
  if (isWhole) scanTail(tail.subarray(0, closing + 1), -1, draft);
  if (!draft.versioned) return { kind: undefined, id: undefined, method: undefined };
  const { id, method, outcome } = draft;
  return { kind: outcome ?? kindOfCall(draft, isWhole), id, method };
}

/** Reads members up to the one that does not fit. */
function scanHead(head: Buffer, draft: EnvelopeDraft): void {
  const members = new MemberCursor(head, skipWhitespace(head, 0));
  while (members.next()) {
    const key = classifyKey(head, members.keyStart, members.keyEnd);
    if (key !== undefined && isPayloadKey(key)) draft.takePayload(key, members.valueStart);
    const valueEnd = members.valueEnd();
    // A number that ends with the head may go on after it.
    if (valueEnd === -1 || valueEnd === head.length) return;
    if (key !== undefined && !isPayloadKey(key)) draft.takeSimple(key, head, members.valueStart, valueEnd);
  }
}

/** A missing id makes a notification only if the end of the message was there to show one. */
function kindOfCall(draft: EnvelopeDraft, isWhole: boolean): FrameKind | undefined {
  if (draft.method === undefined) return undefined;
  if (draft.id !== undefined) return 'request';
  return isWhole ? 'notification' : undefined;
}

/** Longer lines are no usual notification; to go over one twice to learn from it costs more than it saves. */
const MAX_LINE_BYTES = 16 * 1024;
/** Longer heads are of no usual notification. */
const MAX_HEAD_BYTES = 128;

const NOTHING = Buffer.alloc(0);
const NONE = { head: NOTHING, envelope: undefined } as const;

/** What the last notification was like: its bytes up to and with the `{` of its params, and what the scan said. */
type Known = { readonly head: Buffer; readonly envelope: Envelope } | typeof NONE;

/**
 * `scanEnvelope` for the lines of one sender. Notifications of progress come by the thousand and start alike byte for
 * byte, so what was found in one holds for the next.
 */
export class EnvelopeScanner {
  readonly #draft = new EnvelopeDraft();
  readonly #members = new MemberCursor(NOTHING, 0);
  #known: Known = NONE;

  /** Returns what `scanEnvelope(bytes)` would. */
  scan(bytes: Buffer): Envelope | undefined {
    const { head, envelope } = this.#known;
    if (bytes.length > MAX_LINE_BYTES) return this.#scan(bytes);
    if (envelope !== undefined && startsWith(bytes, head) && endsWithPayload(bytes, envelope.payloadStart)) {
      return envelope;
    }
    const scanned = this.#scan(bytes);
    if (scanned?.kind === 'notification') this.#learn(bytes, scanned);
    return scanned;
  }

  #scan(bytes: Buffer): Envelope | undefined {
    this.#draft.reset();
    this.#members.restart(bytes, 0);
    const envelope = scanMembers(bytes, this.#draft, this.#members);
    // The cursor would keep the message until the next one comes.
    this.#members.restart(NOTHING, 0);
    return envelope;
  }

  #learn(bytes: Buffer, envelope: Envelope): void {
    const { payloadStart } = envelope;
    if (payloadStart >= MAX_HEAD_BYTES || bytes[payloadStart] !== OPEN_BRACE) return;
    // A member before the params might be one that a later one would replace.
    if (!endsWithPayload(bytes, payloadStart)) return;
    this.#known = { head: Buffer.from(bytes.subarray(0, payloadStart + 1)), envelope };
  }
}

function startsWith(bytes: Buffer, head: Buffer): boolean {
  if (bytes.length < head.length) return false;
  for (let at = head.length - 1; at >= 0; at--) if (bytes[at] !== head[at]) return false;
  return true;
}

/** After the payload there is the end of the message and nothing else. */
function endsWithPayload(bytes: Buffer, payloadStart: number): boolean {
  const last = bytes.length - 1;
  return bytes[last] === CLOSE_BRACE && skipValue(bytes, payloadStart) === last;
}
