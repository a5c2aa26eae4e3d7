/**
 * What clients answer to what they were asked for. Only its shape is looked at: what a user said is for the server.
 * [spec 2026-07-28 basic/patterns/mrtr#inputresponses]
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
  /** Keys without such an answer, to be asked for again. */
  readonly missing: readonly string[];
}

/** In one retry. Nobody is asked as many at a time; those after them are asked for again. */
const MAX_RESPONSES = 1000;

/**
 * `params.inputResponses` of a retry. `asked` gives the method of each request whose answer is still missing; answers
 * to anything else are ignored.
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
    // Two answers to one question are none.
    if (seen.has(key)) answers.delete(key);
    else if (isInputResponse(method, bytes, span)) answers.set(key, bytes.subarray(span.start, span.end));
    seen.add(key);
  }
  return { answers, missing: [...asked.keys()].filter((key) => !answers.has(key)) };
}

/** A state that the bridge has sealed has about 200 characters; whatever is longer is none, and is not looked at. */
export const MAX_STATE_LENGTH = 4096;

/** `params.requestState`: its text where the bridge may have sealed it. Undefined: there is none. */
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

/** Where its value begins; -1: there is none. */
function findResponses({ bytes, payloadStart, outline }: Frame): number {
  const span = findUniqueMember(bytes, payloadStart, 'inputResponses', outline);
  return span === undefined || span === 'duplicate' ? -1 : span.start;
}

/** Is the JSON text bytes[start, end) an answer to a request of this method, as far as its required members go? */
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

/** What a client was asked, as far as its answer depends on it. */
export interface AskedInput {
  readonly method: string;
  /** It was an elicitation in URL mode. */
  readonly isUrlMode: boolean;
}

/**
 * A legacy client's result as the answer to an input request of a modern server, as JSON text. Undefined: it is no
 * answer to such a request.
 */
export function toInputResponse({ method, isUrlMode }: AskedInput, { bytes, payloadStart }: Frame): Buffer | undefined {
  const span = { start: payloadStart, end: skipValue(bytes, payloadStart) };
  if (span.end === -1 || !isInputResponse(method, bytes, span)) return undefined;
  const text = bytes.subarray(span.start, span.end);
  return method === ELICIT ? withoutIdleContent(text, isUrlMode) : text;
}

/** [spec 2026-07-28 client/elicitation#response-actions] only who accepted a form has said something. */
function withoutIdleContent(text: Buffer, isUrlMode: boolean): Buffer {
  const result = ObjectEditor.read(text, 0, ['action', 'content']);
  const action = result?.value('action');
  if (result === undefined || action === undefined) return text;
  if (isUrlMode || !isStringToken(text, action.start, action.end, 'accept')) result.remove('content');
  return replaceSpans(text, result.edits());
}
