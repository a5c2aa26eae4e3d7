import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './ascii.ts';
import { skipString, skipValue, skipWhitespace } from './scan-json.ts';

/**
 * The value of a JSON text, as JSON.parse has it. Throws SyntaxError on anything else.
 * The engines of Node 24 and 26 read a key with an escape as another key of the same length that stood in that place of
 * an object before [https://github.com/nodejs/node/issues/63785]. Peers choose their keys,
 * so a text that spells one with an escape is read here.
 */
export function parseJson(text: Buffer): unknown {
  const value: unknown = JSON.parse(text.toString('utf8'));
  return hasEscapedKey(text) ? new JsonReader(text).value() : value;
}

/** Most texts have no escape at all. */
function hasEscapedKey(text: Buffer): boolean {
  if (!text.includes(BACKSLASH)) return false;
  for (let at = text.indexOf(QUOTE); at !== -1; at = text.indexOf(QUOTE, at)) {
    const start = at;
    at = skipString(text, start);
    if (text[skipWhitespace(text, at)] === COLON && text.subarray(start, at).includes(BACKSLASH)) return true;
  }
  return false;
}

/** Goes over a text that is known to be JSON, once. As deep as the text is nested, which its sender does not decide alone. */
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

  /** What stands between an opening bracket and the one that closes it. */
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

  /** Over whitespace, and over this byte if it is there. */
  #pass(byte: number): void {
    const at = skipWhitespace(this.#text, this.#at);
    this.#at = this.#text[at] === byte ? skipWhitespace(this.#text, at + 1) : at;
  }
}
