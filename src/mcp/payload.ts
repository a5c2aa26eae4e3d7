import type { Frame } from '../wire/frame.ts';
import { parseJson } from '../wire/parse-json.ts';
import { isDeeperThan, type Span } from '../wire/scan-json.ts';

/** Deeper values would overflow the stack of those who walk or print them. */
const MAX_DEPTH = 1000;

/** Members of a peer's object; what they hold is checked where it is used. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The value of `params`, `result` or `error`, whichever a message of its kind has; for the few that must be read.
 * Undefined: there is none, or it is no object. Or it is not JSON, or nests too deep: of a server's message only the
 * envelope was looked at, and there are servers that print NaN. Never throws.
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
  if (isDeeperThan(frame.bytes, MAX_DEPTH)) return undefined;
  try {
    return asFields(frame.json());
  } catch {
    return undefined;
  }
}

/** The JSON text bytes[start, end) as its value; undefined when it is none, or nests too deep. */
export function parseSpan(bytes: Buffer, { start, end }: Span): unknown {
  const text = bytes.subarray(start, end);
  if (isDeeperThan(text, MAX_DEPTH)) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
