import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './ascii.ts';
import { skipString, skipValue, skipWhitespace } from './scan-json.ts';

/**
 * Parses a JSON text like JSON.parse, and throws SyntaxError like it. In Node 24 and 26 JSON.parse can return a key
 * with an escape as another key of the same length that was earlier at that position of an object
 * [https://github.com/nodejs/node/issues/63785]. Peers choose their keys, so a text with an escaped key is parsed by
 * JsonReader.
 */
export function parseJson(text: Buffer): unknown {
  const value: unknown = JSON.parse(text.toString('utf8'));
  return hasEscapedKey(text) ? new JsonReader(text).value() : value;
}

/** Most texts have no escape at all, which the first test detects. */
function hasEscapedKey(text: Buffer): boolean {
  if (!text.includes(BACKSLASH)) return false;
  for (let at = text.indexOf(QUOTE); at !== -1; at = text.indexOf(QUOTE, at)) {
    const start = at;
    at = skipString(text, start);
    if (text[skipWhitespace(text, at)] === COLON && text.subarray(start, at).includes(BACKSLASH)) return true;
  }
  return false;
}

/**
 * Parses a text that is known to be valid JSON, in one pass. Recursion is as deep as the text is nested; the caller
 * limits the depth.
 */
class JsonReader {
  readonly #text: Buffer;
  #at: number;

  constructor(text: Buffer) {
    this.#text = text;
    this.#at = skipWhitespace(text, 0);
  }

  value(): unknown {
    const first = this.#text[this.#at];
    if (first === OPEN_BRACE) return Object.fromEntries(this.#all(CLOSE_BRACE, () => this.#member()));
    if (first === OPEN_BRACKET) return this.#all(CLOSE_BRACKET, () => this.value());
    const start = this.#at;
    this.#at = skipValue(this.#text, start);
    return JSON.parse(this.#text.toString('utf8', start, this.#at));
  }

  #member(): [string, unknown] {
    const key = this.value() as string;
    this.#pass(COLON);
    return [key, this.value()];
  }

  /** Reads the items or members up to the closing bracket. */
  #all<Item>(close: number, read: () => Item): Item[] {
    const items: Item[] = [];
    this.#pass(this.#text[this.#at] as number);
    while (this.#text[this.#at] !== close) {
      items.push(read());
      this.#pass(COMMA);
    }
    this.#at += 1;
    return items;
  }

  /** Skips whitespace, and this byte if it follows. */
  #pass(byte: number): void {
    const at = skipWhitespace(this.#text, this.#at);
    this.#at = this.#text[at] === byte ? skipWhitespace(this.#text, at + 1) : at;
  }
}
