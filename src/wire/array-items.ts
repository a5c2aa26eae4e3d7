import { CLOSE_BRACKET, COMMA, OPEN_BRACKET } from './ascii.ts';
import { type Span, skipValue, skipWhitespace } from './scan-json.ts';

/** The items of the array at `arrayStart`. Undefined: it is no array, or its end is missing. */
export function itemSpans(bytes: Buffer, arrayStart: number): readonly Span[] | undefined {
  if (arrayStart < 0 || bytes[arrayStart] !== OPEN_BRACKET) return undefined;
  const items: Span[] = [];
  let at = skipWhitespace(bytes, arrayStart + 1);
  if (bytes[at] === CLOSE_BRACKET) return items;
  while (at < bytes.length) {
    const end = skipValue(bytes, at);
    if (end === -1) return undefined;
    items.push({ start: at, end });
    const next = skipWhitespace(bytes, end);
    if (bytes[next] === CLOSE_BRACKET) return items;
    if (bytes[next] !== COMMA) return undefined;
    at = skipWhitespace(bytes, next + 1);
  }
  return undefined;
}
