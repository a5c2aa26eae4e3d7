import type { Frame } from '../../wire/frame.ts';
import { visitMembers } from '../../wire/json/outline.ts';
import { parseJson } from '../../wire/json/parse-json.ts';
import { countValues, findText, holdsMoreThan, isDeeperThan, type Span } from '../../wire/json/scan-json.ts';

/** Walking or printing deeper values would overflow the stack. */
const MAX_DEPTH = 1000;

/**
 * Limit of values in one JSON text that the bridge parses, including nested ones. Parsing blocks all other calls, and
 * each value takes as long as fifty bytes of text. Messages that pass are not parsed, so arguments and results are not
 * limited: only what the bridge itself must understand, such as capabilities, a schema, a task or an error.
 */
export const MAX_PARSED_VALUES = 50_000;

/** Members of a peer's object. Their values are checked where they are used. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * Parses the `params`, `result` or `error` of a message, for the few that must be read. Returns undefined if it is
 * missing or no object, or if the message is not JSON, nests too deep or has too many values: only the envelope of a
 * server's message was checked, and some servers print NaN. Never throws.
 */
export function readPayload(frame: Frame): Fields | undefined {
  const message = readMembers(frame);
  return message && asFields(message[memberOf(frame)]);
}

/** Returns an object as its members; undefined for arrays and everything else. */
export function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function memberOf({ kind }: Frame): 'params' | 'result' | 'error' {
  return kind === 'result' || kind === 'error' ? kind : 'params';
}

/**
 * Shows a peer's value that should be a string. Other values are shown as JSON, because `String` would call a member
 * named `toString`, which in a parsed object is no function.
 */
export function showText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** Encodes a value of the bridge's own as JSON text. */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Parses a whole message. Returns undefined under the conditions of `readPayload`. */
export function readMembers(frame: Frame): Fields | undefined {
  if (isTooMuch(frame.bytes)) return undefined;
  try {
    return asFields(frame.json());
  } catch {
    return undefined;
  }
}

/** Returns true for text that exceeds the limits for parsing. */
function isTooMuch(text: Buffer): boolean {
  return holdsMoreThan(text, MAX_PARSED_VALUES) || isDeeperThan(text, MAX_DEPTH);
}

/** Shorter messages are parsed as a whole, which is faster than a walk and shows whether they are JSON. */
const WORTH_A_WALK = 64 * 1024;

/**
 * Reads the payload's members with these names; the result may have others too. In a large message only the named ones
 * are parsed, so the size of the others does not matter. Of members with the same name the last one counts, as in
 * `readPayload`.
 */
export function readFields(frame: Frame, keys: readonly string[]): Fields {
  const { bytes, payloadStart, outline } = frame;
  if (bytes.length < WORTH_A_WALK) return readPayload(frame) ?? {};
  const spans = new Map<string, Span>();
  visitMembers(bytes, payloadStart, outline, (keyStart, keyEnd, start, end) => {
    const key = findText(bytes, keyStart, keyEnd, keys);
    if (key !== undefined) spans.set(key, { start, end });
    return true;
  });
  return Object.fromEntries([...spans].map(([key, span]) => [key, parseSpan(bytes, span)]));
}

/** Returns a member of the payload, or undefined if there is none. */
export function readField(frame: Frame, key: string): unknown {
  return readFields(frame, [key])[key];
}

/**
 * Parses the JSON text bytes[start, end). Returns undefined if it is not JSON, nests too deep or has too many values.
 */
export function parseSpan(bytes: Buffer, { start, end }: Span): unknown {
  const text = bytes.subarray(start, end);
  if (isTooMuch(text)) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * Limit of values parsed from many parts of one message together, for example its tools. It is higher than the limit
 * for a single part, because long lists have many items.
 */
export const MAX_LISTED_VALUES = 200_000;

/** Parses parts of one message, up to a common limit of values. */
export class PartReader {
  readonly bytes: Buffer;
  #left = MAX_LISTED_VALUES;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** True if no part was refused because of the common limit. */
  get isComplete(): boolean {
    return this.#left >= 0;
  }

  /** Returns what `parseSpan` returns, or undefined once the parts exceed the common limit. */
  read(span: Span): unknown {
    if (!this.isComplete) return undefined;
    this.#left -= countValues(this.bytes.subarray(span.start, span.end), this.#left);
    return this.isComplete ? parseSpan(this.bytes, span) : undefined;
  }
}
