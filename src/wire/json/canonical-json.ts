import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './ascii.ts';
import { decodeString, skipString, skipValue, skipWhitespace } from './scan-json.ts';

/** Deeper values have no canonical form, because each level is a call on the stack. */
const MAX_DEPTH = 200;

/**
 * Writes a JSON value so that two texts of the same value become equal: without whitespace, with the members of objects
 * in the order of their keys, and strings without needless escapes. Members with equal keys all stay, in their order,
 * because parsers differ in which one they take. Numbers stay as written, because parsing would round some of them.
 *
 * Undefined if the text is not JSON, nests too deep, or has more than `maxValues` values.
 */
export function canonicalJson(bytes: Buffer, start: number, maxValues: number): string | undefined {
  return new CanonicalWriter(bytes, start, maxValues).write(0);
}

/** Reads each byte once, whatever it nests in. */
class CanonicalWriter {
  readonly #bytes: Buffer;
  #at: number;
  #valuesLeft: number;

  constructor(bytes: Buffer, start: number, maxValues: number) {
    this.#bytes = bytes;
    this.#at = start;
    this.#valuesLeft = maxValues;
  }

  write(depth: number): string | undefined {
    this.#valuesLeft -= 1;
    if (depth > MAX_DEPTH || this.#valuesLeft < 0) return undefined;
    switch (this.#bytes[this.#at]) {
      case OPEN_BRACE:
        return this.#writeObject(depth);
      case OPEN_BRACKET:
        return this.#writeArray(depth);
      case QUOTE:
        return this.#writeString();
      default:
        return this.#writeScalar();
    }
  }

  #writeScalar(): string | undefined {
    const end = skipValue(this.#bytes, this.#at);
    if (end === -1) return undefined;
    const text = this.#bytes.toString('latin1', this.#at, end);
    this.#at = end;
    return text;
  }

  #writeString(): string | undefined {
    const start = this.#at;
    const end = skipString(this.#bytes, start);
    if (end === -1) return undefined;
    this.#at = end;
    const token = this.#bytes.toString('utf8', start, end);
    // Fast path: most strings have no escapes, and are written as they are.
    if (!token.includes('\\')) return token;
    const text = decodeString(this.#bytes, start, end);
    return text === undefined ? undefined : JSON.stringify(text);
  }

  #writeArray(depth: number): string | undefined {
    const items: string[] = [];
    for (let hasNext = this.#enter(CLOSE_BRACKET); hasNext; ) {
      const item = this.write(depth + 1);
      const following = item === undefined ? undefined : this.#follow(CLOSE_BRACKET);
      if (item === undefined || following === undefined) return undefined;
      items.push(item);
      hasNext = following;
    }
    return `[${items.join()}]`;
  }

  #writeObject(depth: number): string | undefined {
    const members: [key: string, member: string][] = [];
    for (let hasNext = this.#enter(CLOSE_BRACE); hasNext; ) {
      if (this.#bytes[this.#at] !== QUOTE) return undefined;
      const key = this.#writeString();
      if (key === undefined || !this.#skip(COLON)) return undefined;
      const value = this.write(depth + 1);
      const following = value === undefined ? undefined : this.#follow(CLOSE_BRACE);
      if (following === undefined) return undefined;
      members.push([key, `${key}:${value}`]);
      hasNext = following;
    }
    members.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
    return `{${members.map(([, member]) => member).join()}}`;
  }

  /** Enters an array or object. Returns false if it is empty, and has been left. */
  #enter(close: number): boolean {
    this.#at = skipWhitespace(this.#bytes, this.#at + 1);
    if (this.#bytes[this.#at] !== close) return true;
    this.#at += 1;
    return false;
  }

  /** Moves from an item to the next one. Returns false if there is none and the array or object has been left. */
  #follow(close: number): boolean | undefined {
    this.#at = skipWhitespace(this.#bytes, this.#at);
    if (this.#bytes[this.#at] === close) {
      this.#at += 1;
      return false;
    }
    return this.#skip(COMMA) ? true : undefined;
  }

  /** Skips this byte with the whitespace around it. Returns false if there is another one. */
  #skip(byte: number): boolean {
    const at = skipWhitespace(this.#bytes, this.#at);
    if (this.#bytes[at] !== byte) return false;
    this.#at = skipWhitespace(this.#bytes, at + 1);
    return true;
  }
}
