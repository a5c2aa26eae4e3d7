import { CLOSE_BRACKET, COMMA, OPEN_BRACKET } from './ascii.ts';
import { ObjectEditor } from './object-editor.ts';
import { type Span, skipValue, skipWhitespace } from './scan-json.ts';

/**
 * Items of a list that the bridge looks at one by one, as tools or blocks of content, in one message. Longer lists pass as
 * they are: each item costs as much as a hundred bytes of text, and no list of use is as long.
 */
export const MAX_ITEMS = 20_000;

/** The items of the array at `arrayStart`. Undefined: it is no array, or its end is missing, or it has too many. */
export function itemSpans(bytes: Buffer, arrayStart: number): readonly Span[] | undefined {
  const items: Span[] = [];
  const isWhole = walkItems(bytes, arrayStart, (start) => {
    const end = skipValue(bytes, start);
    items.push({ start, end });
    return end;
  });
  return isWhole ? items : undefined;
}

/**
 * The objects in the array at `arrayStart`, whose members called one of `keys` may change, read in one walk. Items that are
 * no objects are left out. Undefined under the conditions of `itemSpans`.
 */
export function itemEditors(
  bytes: Buffer,
  arrayStart: number,
  keys: readonly string[],
): readonly ObjectEditor[] | undefined {
  const items: ObjectEditor[] = [];
  const isWhole = walkItems(bytes, arrayStart, (start) => {
    const editor = ObjectEditor.read(bytes, start, keys);
    if (editor === undefined) return skipValue(bytes, start);
    items.push(editor);
    return editor.end;
  });
  return isWhole ? items : undefined;
}

/** @param take gets where an item begins and returns where it ends, or -1 where that cannot be told */
function walkItems(bytes: Buffer, arrayStart: number, take: (start: number) => number): boolean {
  if (arrayStart < 0 || bytes[arrayStart] !== OPEN_BRACKET) return false;
  let count = 0;
  let at = skipWhitespace(bytes, arrayStart + 1);
  if (bytes[at] === CLOSE_BRACKET) return true;
  while (at < bytes.length && count < MAX_ITEMS) {
    const end = take(at);
    if (end === -1) return false;
    count++;
    const next = skipWhitespace(bytes, end);
    if (bytes[next] === CLOSE_BRACKET) return true;
    if (bytes[next] !== COMMA) return false;
    at = skipWhitespace(bytes, next + 1);
  }
  return false;
}
