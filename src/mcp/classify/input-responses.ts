/**
 * Clients' answers to input requests. Only their shape is checked; the server judges what a user said. [spec 2026-07-28
 * basic/patterns/mrtr#inputresponses]
 */

import { type Frame, replaceSpans } from '../../wire/frame.ts';
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/json/ascii.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findUniqueMember } from '../../wire/json/outline.ts';
import { decodeString, isStringToken, MemberCursor, type Span, skipValue } from '../../wire/json/scan-json.ts';
import { ELICIT, LIST_ROOTS, SAMPLE } from '../vocabulary/methods.ts';

export interface InputResponses {
  /** JSON text of each answer that has the right shape, by key; part of the request it was read from. */
  readonly answers: ReadonlyMap<string, Buffer>;
  /** Keys without such an answer; the client is asked for them again. */
  readonly missing: readonly string[];
}

/**
 * Limit of answers read from one retry, far more than any client is asked at a time. Answers after it count as missing.
 */
const MAX_RESPONSES = 1000;

/**
 * Reads `params.inputResponses` of a retry. `asked` maps the key of each unanswered request to its method; answers to
 * other keys are ignored.
 */
export function readInputResponses(frame: Frame, asked: ReadonlyMap<string, string>): InputResponses {
  const { bytes } = frame;
  const given = findResponses(frame);
  const answers = new Map<string, Buffer>();
  const seen = new Set<string>();
  const members = new MemberCursor(bytes, given);
  for (let count = 0; count < MAX_RESPONSES && members.next(); count += 1) {
    const key = decodeString(bytes, members.keyStart, members.keyEnd);
    const method = key === undefined ? undefined : asked.get(key);
    if (key === undefined || method === undefined) continue;
    const span = { start: members.valueStart, end: members.valueEnd() };
    // A key that occurs twice is ambiguous, so neither answer counts.
    if (seen.has(key)) answers.delete(key);
    else if (isInputResponse(method, bytes, span)) answers.set(key, bytes.subarray(span.start, span.end));
    seen.add(key);
  }
  return { answers, missing: [...asked.keys()].filter((key) => !answers.has(key)) };
}

/**
 * Longest `requestState` that is decoded. A state sealed by the bridge has about 200 characters, so a longer one is not
 * from the bridge.
 */
export const MAX_STATE_LENGTH = 4096;

/**
 * Reads `params.requestState`. Returns undefined if there is none; `text` is undefined if the bridge cannot have sealed
 * it.
 */
export function readRequestState({
  bytes,
  payloadStart,
  outline,
}: Frame): { readonly text: string | undefined } | undefined {
  const span = findUniqueMember(bytes, payloadStart, 'requestState', outline);
  if (span === undefined) return undefined;
  if (span === 'duplicate' || bytes[span.start] !== QUOTE) return { text: undefined };
  const { start, end } = span;
  return { text: end - start - 2 > MAX_STATE_LENGTH ? undefined : decodeString(bytes, start, end) };
}

/** Returns the offset of the value of `inputResponses`, or -1 if it is missing or occurs twice. */
function findResponses({ bytes, payloadStart, outline }: Frame): number {
  const span = findUniqueMember(bytes, payloadStart, 'inputResponses', outline);
  return span === undefined || span === 'duplicate' ? -1 : span.start;
}

/** Returns true if the JSON text at `start` has the required members of an answer to a request of this method. */
export function isInputResponse(method: string, bytes: Buffer, { start }: Span): boolean {
  if (bytes[start] !== OPEN_BRACE) return false;
  switch (method) {
    case ELICIT:
      return isAction(bytes, findUniqueMember(bytes, start, 'action'));
    case SAMPLE:
      return (
        startsWith(bytes, start, 'role', QUOTE) &&
        startsWith(bytes, start, 'model', QUOTE) &&
        (startsWith(bytes, start, 'content', OPEN_BRACE) || startsWith(bytes, start, 'content', OPEN_BRACKET))
      );
    case LIST_ROOTS:
      return startsWith(bytes, start, 'roots', OPEN_BRACKET);
    default:
      return false;
  }
}

const actions = ['accept', 'decline', 'cancel'] as const;

function isAction(bytes: Buffer, span: Span | 'duplicate' | undefined): boolean {
  if (span === undefined || span === 'duplicate' || bytes[span.start] !== QUOTE) return false;
  return actions.some((action) => isStringToken(bytes, span.start, span.end, action));
}

function startsWith(bytes: Buffer, objectStart: number, key: string, first: number): boolean {
  const span = findUniqueMember(bytes, objectStart, key);
  return span !== undefined && span !== 'duplicate' && bytes[span.start] === first;
}

/**
 * An input request as far as the check of its answer needs it. `isUrlMode` is true only for an elicitation in URL mode.
 */
export interface AskedInput {
  readonly method: string;
  readonly isUrlMode: boolean;
}

/**
 * Converts a legacy client's result to the answer to a modern server's input request, as JSON text. Returns undefined
 * if the result lacks the members that such an answer requires.
 */
export function toInputResponse({ method, isUrlMode }: AskedInput, { bytes, payloadStart }: Frame): Buffer | undefined {
  const span = { start: payloadStart, end: skipValue(bytes, payloadStart) };
  if (span.end === -1 || !isInputResponse(method, bytes, span)) return undefined;
  const text = bytes.subarray(span.start, span.end);
  return method === ELICIT ? withoutIdleContent(text, isUrlMode) : text;
}

/** Removes `content` unless the user accepted a form. [spec 2026-07-28 client/elicitation#response-actions] */
function withoutIdleContent(text: Buffer, isUrlMode: boolean): Buffer {
  const result = ObjectEditor.read(text, 0, ['action', 'content']);
  const action = result?.value('action');
  if (result === undefined || action === undefined) return text;
  if (isUrlMode || !isStringToken(text, action.start, action.end, 'accept')) result.remove('content');
  return replaceSpans(text, result.edits());
}
