import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/json/ascii.ts';
import { isWhitespace, skipString, skipWhitespace } from '../../wire/json/scan-json.ts';

/** Deeper values are indented no further: the text would grow with the square of the depth. */
const MAX_INDENTED_DEPTH = 32;

/**
 * Breaks valid JSON into indented lines. Numbers, the order of members and their names stay as they are written, which
 * parsing would not preserve, and no depth is too much.
 */
export function prettyJson(json: Buffer): string {
  const parts: string[] = [];
  let depth = 0;
  let at = skipWhitespace(json, 0);
  while (at < json.length) {
    const byte = json[at];
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      const inside = skipWhitespace(json, at + 1);
      const isEmpty = json[inside] === CLOSE_BRACE || json[inside] === CLOSE_BRACKET;
      if (isEmpty) parts.push(byte === OPEN_BRACE ? '{}' : '[]');
      else parts.push(byte === OPEN_BRACE ? '{' : '[', newLine(++depth));
      at = isEmpty ? inside + 1 : inside;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      parts.push(newLine(--depth), byte === CLOSE_BRACE ? '}' : ']');
      at += 1;
    } else if (byte === COMMA) {
      parts.push(',', newLine(depth));
      at += 1;
    } else if (byte === COLON) {
      parts.push(': ');
      at += 1;
    } else {
      const end = endOfScalar(json, at);
      parts.push(json.toString('utf8', at, end));
      at = end;
    }
    at = skipWhitespace(json, at);
  }
  return parts.join('');
}

function newLine(depth: number): string {
  return `\n${'  '.repeat(Math.min(Math.max(depth, 0), MAX_INDENTED_DEPTH))}`;
}

/** Returns the end of a string, number or literal. */
function endOfScalar(json: Buffer, start: number): number {
  if (json[start] === QUOTE) {
    const end = skipString(json, start);
    return end === -1 ? json.length : end;
  }
  let at = start + 1;
  while (at < json.length && !ENDS.has(json[at]) && !isWhitespace(json[at])) at += 1;
  return at;
}

const ENDS: ReadonlySet<number | undefined> = new Set([COMMA, CLOSE_BRACE, CLOSE_BRACKET]);
