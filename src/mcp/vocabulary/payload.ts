import type { Frame } from '../../wire/frame.ts';
import { visitMembers } from '../../wire/json/outline.ts';
import { parseJson } from '../../wire/json/parse-json.ts';
import { countValues, findText, holdsMoreThan, isDeeperThan, type Span } from '../../wire/json/scan-json.ts';

/** Deeper values would overflow the stack of those who walk or print them. */
const MAX_DEPTH = 1000;

/**
 * Values of one JSON text that the bridge makes objects of, all those within it counted. Others are served only when that
 * is done, and each value costs as much as fifty bytes of text. Of a message that passes it makes none, so this bounds no
 * arguments and no results: only what the bridge itself has to understand, as capabilities, a schema, a task or an error.
 */
export const MAX_PARSED_VALUES = 50_000;

/** Members of a peer's object; what they hold is checked where it is used. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The value of `params`, `result` or `error`, whichever a message of its kind has; for the few that must be read.
 * Undefined: there is none, or it is no object. Or it is not JSON, or nests too deep, or has too many values: of a server's
 * message only the envelope was looked at, and there are servers that print NaN. Never throws.
 */
export function readPayload(frame: Frame): Fields | undefined {
  const message = readMembers(frame);
  return message && asFields(message[memberOf(frame)]);
}

/** An object as its members; arrays are none. */
export function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function memberOf({ kind }: Frame): 'params' | 'result' | 'error' {
  return kind === 'result' || kind === 'error' ? kind : 'params';
}

/**
 * What a peer wrote where a text belongs. Of an object its JSON: `String` would call what the peer has named `toString`,
 * which is no function.
 */
export function showText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** A message as its members; undefined under the same conditions. */
export function readMembers(frame: Frame): Fields | undefined {
  if (isTooMuch(frame.bytes)) return undefined;
  try {
    return asFields(frame.json());
  } catch {
    return undefined;
  }
}

/** Beyond what is made objects of. */
function isTooMuch(text: Buffer): boolean {
  return holdsMoreThan(text, MAX_PARSED_VALUES) || isDeeperThan(text, MAX_DEPTH);
}

/** A shorter message is parsed as a whole: that is faster than to walk over it, and shows whether it is JSON. */
const WORTH_A_WALK = 64 * 1024;

/**
 * At least the members of the payload with these names. Of a large message nothing is made of the others, however much they
 * hold. As in `readPayload` the last one of a name counts.
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

/** One member of the payload; undefined: there is none. */
export function readField(frame: Frame, key: string): unknown {
  return readFields(frame, [key])[key];
}

/** The JSON text bytes[start, end) as its value; undefined when it is none, nests too deep, or has too many values. */
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
 * Values that are made of many parts of one message together, as of its tools: more than of one part, for long lists are
 * long because of what is in them.
 */
export const MAX_LISTED_VALUES = 200_000;

/** Makes values of parts of one message, as long as they are not too many together. */
export class PartReader {
  readonly bytes: Buffer;
  #left = MAX_LISTED_VALUES;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** All that was asked for could be read, as far as its amount goes. */
  get isComplete(): boolean {
    return this.#left >= 0;
  }

  /** Returns what `parseSpan` would; undefined also where too many values came before. */
  read(span: Span): unknown {
    if (!this.isComplete) return undefined;
    this.#left -= countValues(this.bytes.subarray(span.start, span.end), this.#left);
    return this.isComplete ? parseSpan(this.bytes, span) : undefined;
  }
}
