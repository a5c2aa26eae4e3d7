import type { Frame } from '../wire/frame.ts';
import { isDeeperThan, type Span } from '../wire/scan-json.ts';

/** Members of a peer's object; what they hold is checked where it is used. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The value of `params`, `result` or `error`, whichever a message of its kind has; for the few that must be read.
 * Undefined: there is none, or it is no object. Or it is not JSON: of a server's message only the envelope was looked
 * at, and there are servers that print NaN.
 */
export function readPayload(frame: Frame): Fields | undefined {
  const message = parse(frame);
  return message && asFields(message[memberOf(frame)]);
}

/** An object as its members; arrays are none. */
export function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function memberOf({ kind }: Frame): 'params' | 'result' | 'error' {
  return kind === 'result' || kind === 'error' ? kind : 'params';
}

function parse(frame: Frame): Fields | undefined {
  try {
    return asFields(frame.json());
  } catch {
    return undefined;
  }
}

/** Deeper values would overflow the stack of those who walk or print them. */
const MAX_DEPTH = 1000;

/** The JSON text bytes[start, end) as its value; undefined when it is none, or nests too deep. */
export function parseSpan(bytes: Buffer, { start, end }: Span): unknown {
  const text = bytes.subarray(start, end);
  if (isDeeperThan(text, MAX_DEPTH)) return undefined;
  try {
    return JSON.parse(text.toString('utf8'));
  } catch {
    return undefined;
  }
}
