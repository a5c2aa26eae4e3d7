/** Reads the envelope of a JSON-RPC message without its payload. */
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

/** Longer strings at the tail are no ids and end the backward walk. */
const MAX_TAIL_STRING_BYTES = 256;

/**
 * The reason for rejecting a message. `fault` gives the problem and the expected form in English, without quoting the
 * message. `id` is the message's id, if it could be read, so that the sender can be answered.
 */
export interface EnvelopeFault {
  readonly fault: string;
  readonly id: JsonRpcId | undefined;
}

/** Envelope members recovered from a message of which only the ends were kept. */
export interface RecoveredEnvelope {
  readonly kind: FrameKind | undefined;
  readonly id: JsonRpcId | undefined;
  readonly method: string | undefined;
}

/**
 * Fast scan of a line from a server that is trusted to write JSON. It stops as soon as the rest cannot change the
 * result, so the rest is not checked. Undefined if the line is no JSON-RPC message (for example a log line or an
 * array).
 */
export function scanEnvelope(bytes: Buffer): Envelope | undefined {
  return scanMembers(bytes, new EnvelopeDraft(), new MemberCursor(bytes, 0));
}

/** `draft` must be empty; `members` iterates over the message's own members. */
function scanMembers(bytes: Buffer, draft: EnvelopeDraft, members: MemberCursor): Envelope | undefined {
  if (bytes[0] !== OPEN_BRACE || bytes[bytes.length - 1] !== CLOSE_BRACE) return undefined;
  let tailIsRead = false;
  let none: { readonly key: PayloadKey; readonly start: number } | undefined;
  while (members.next()) {
    const key = classifyKey(bytes, members.keyStart, members.keyEnd);
    if (key === undefined) continue;
    if (isPayloadKey(key)) {
      // Some servers write both `result` and `error`, one of them as null. A null counts only if the other is missing.
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
 * Reads simple members backward from the final `}`, not past `floor`. Many servers write `"result":…` first and
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

/** Returns the nearest quote before the closing one, or -1 if there is none within the limit. */
function openingQuote(bytes: Buffer, closing: number, floor: number): number {
  const last = Math.max(floor, closing - MAX_TAIL_STRING_BYTES);
  let at = closing - 1;
  while (at > last && bytes[at] !== QUOTE) at--;
  return at > last ? at : -1;
}

/** Returns the start of the digits that end at `last`, or -1 if there are none. */
function digitsStart(bytes: Buffer, last: number, floor: number): number {
  let at = last;
  while (at > floor && isDigit(bytes[at])) at--;
  return at === last ? -1 : at + 1;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9;
}

/** Shared by all scans, which is safe because a scan runs synchronously to its end. */
const STRICT_DRAFT = new EnvelopeDraft();

/**
 * Full scan of one object of an untrusted client that is known to be valid JSON. Reads all top-level members, so that a
 * later parser of the same bytes cannot read another message than the one that was checked.
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

/** Checks the combination of members; each of them is already valid by itself. */
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
 * Recovers the envelope of an oversized message from its first and last bytes, so that the call it answers can fail at
 * once instead of waiting for its timeout.
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

/** Reads members up to the first that is cut off. */
function scanHead(head: Buffer, draft: EnvelopeDraft): void {
  const members = new MemberCursor(head, skipWhitespace(head, 0));
  while (members.next()) {
    const key = classifyKey(head, members.keyStart, members.keyEnd);
    if (key !== undefined && isPayloadKey(key)) draft.takePayload(key, members.valueStart);
    const valueEnd = members.valueEnd();
    // A number at the end of the head may be cut off.
    if (valueEnd === -1 || valueEnd === head.length) return;
    if (key !== undefined && !isPayloadKey(key)) draft.takeSimple(key, head, members.valueStart, valueEnd);
  }
}

/** A message without an id is a notification only if its end was available, which could have shown an id. */
function kindOfCall(draft: EnvelopeDraft, isWhole: boolean): FrameKind | undefined {
  if (draft.method === undefined) return undefined;
  if (draft.id !== undefined) return 'request';
  return isWhole ? 'notification' : undefined;
}

/** Longer lines are no usual notifications; scanning one twice to learn from it costs more than it saves. */
const MAX_LINE_BYTES = 16 * 1024;
/** Usual notifications have shorter heads. */
const MAX_HEAD_BYTES = 128;

const NOTHING = Buffer.alloc(0);
const NONE = { head: NOTHING, envelope: undefined } as const;

/** The last notification: its bytes up to and including the `{` of its params, and its envelope. */
type Known = { readonly head: Buffer; readonly envelope: Envelope } | typeof NONE;

/**
 * `scanEnvelope` for the lines of one sender. Progress notifications come by the thousand and start with the same
 * bytes, so the envelope of one applies to the next.
 */
export class EnvelopeScanner {
  readonly #draft = new EnvelopeDraft();
  readonly #members = new MemberCursor(NOTHING, 0);
  #known: Known = NONE;

  /** Returns the same as `scanEnvelope(bytes)`. */
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
    // The cursor would otherwise keep the message in memory until the next one.
    this.#members.restart(NOTHING, 0);
    return envelope;
  }

  #learn(bytes: Buffer, envelope: Envelope): void {
    const { payloadStart } = envelope;
    if (payloadStart >= MAX_HEAD_BYTES || bytes[payloadStart] !== OPEN_BRACE) return;
    // A member after the params could replace one before them.
    if (!endsWithPayload(bytes, payloadStart)) return;
    this.#known = { head: Buffer.from(bytes.subarray(0, payloadStart + 1)), envelope };
  }
}

function startsWith(bytes: Buffer, head: Buffer): boolean {
  if (bytes.length < head.length) return false;
  for (let at = head.length - 1; at >= 0; at--) if (bytes[at] !== head[at]) return false;
  return true;
}

/** Returns true if only the closing brace of the message follows the payload. */
function endsWithPayload(bytes: Buffer, payloadStart: number): boolean {
  const last = bytes.length - 1;
  return bytes[last] === CLOSE_BRACE && skipValue(bytes, payloadStart) === last;
}
