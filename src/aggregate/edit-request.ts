/** Changes the one member of a client's request by which its server is found. */
import { encodeJson, parseSpan } from '../mcp/vocabulary/payload.ts';
import { editFrame, type Frame } from '../wire/frame.ts';
import { OPEN_BRACE } from '../wire/json/ascii.ts';
import { findUnmistakable } from '../wire/json/outline.ts';
import type { Span } from '../wire/json/scan-json.ts';

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
  const value = span && parseSpan(bytes, span);
  return span !== undefined && typeof value === 'string' ? { span, value } : undefined;
}

/** Replaces the text; all other bytes stay. */
export function withText(frame: Frame, { span, value }: FoundText, replacement: string): Frame {
  return value === replacement ? frame : editFrame(frame, [{ ...span, replacement: encodeJson(replacement) }]);
}
