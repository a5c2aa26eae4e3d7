import { CLOSE_BRACKET, COMMA, OPEN_BRACKET } from './ascii.ts';
import { type Span, skipValue, skipWhitespace } from './scan-json.ts';

/**
 * Items of a list that the bridge looks at one by one, as tools or blocks of content, in one message. Longer lists pass as
 * they are: each item costs as much as a hundred bytes of text, and no list of use is as long.
 */
export const MAX_ITEMS = 20_000;

/** The items of the array at `arrayStart`. Undefined: it is no array, or its end is missing, or it has too many. */
export function itemSpans(bytes: Buffer, arrayStart: number): readonly Span[] | undefined {
  if (arrayStart < 0 || bytes[arrayStart] !== OPEN_BRACKET) return undefined;
  const items: Span[] = [];
  let at = skipWhitespace(bytes, arrayStart + 1);
  if (bytes[at] === CLOSE_BRACKET) return items;
  while (at < bytes.length) {
    const end = skipValue(bytes, at);
    if (end === -1 || items.length === MAX_ITEMS) return undefined;
    items.push({ start: at, end });
    const next = skipWhitespace(bytes, end);
    if (bytes[next] === CLOSE_BRACKET) return items;
    if (bytes[next] !== COMMA) return undefined;
    at = skipWhitespace(bytes, next + 1);
  }
  return undefined;
}
