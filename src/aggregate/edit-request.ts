/** Changes the one member of a client's request by which its server is found. */
import { encodeJson } from '../mcp/vocabulary/payload.ts';
import { editFrame, type Frame } from '../wire/frame.ts';
import { OPEN_BRACE, QUOTE } from '../wire/json/ascii.ts';
import { findUnmistakable } from '../wire/json/outline.ts';
import { decodeString, type Span } from '../wire/json/scan-json.ts';

/** A text in the parameters of a request. */
export interface FoundText {
  readonly span: Span;
  readonly value: string;
}

/** Finds `params.<path>`. Undefined if there is no such text, or if parsers could read different ones. */
export function findText({ bytes, payloadStart, outline }: Frame, ...path: readonly string[]): FoundText | undefined {
  let start = payloadStart;
  let span: Span | undefined;
  for (const key of path) {
    if (start === -1 || bytes[start] !== OPEN_BRACE) return undefined;
    const found = findUnmistakable({ bytes, outline }, start, key);
    if (typeof found !== 'object') return undefined;
    span = found;
    start = found.start;
  }
  const value = span && bytes[span.start] === QUOTE ? decodeString(bytes, span.start, span.end) : undefined;
  return span !== undefined && value !== undefined ? { span, value } : undefined;
}

/** Replaces the text; all other bytes stay. */
export function withText(frame: Frame, { span, value }: FoundText, replacement: string): Frame {
  if (value === replacement) return frame;
  const { start, end } = span;
  // A text that is written as it is, and loses only its beginning, needs no other bytes.
  const removed = value.length - replacement.length;
  if (end - start === value.length + 2 && removed > 0 && value.endsWith(replacement)) {
    return editFrame(frame, [{ start: start + 1, end: start + 1 + removed, replacement: NOTHING }]);
  }
  return editFrame(frame, [{ start, end, replacement: encodeJson(replacement) }]);
}

const NOTHING = Buffer.alloc(0);
