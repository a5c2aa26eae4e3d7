import type { Frame } from '../wire/frame.ts';
import type { Span } from '../wire/scan-json.ts';

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

/** The JSON text bytes[start, end) as its value; undefined when it is none. */
export function parseSpan(bytes: Buffer, { start, end }: Span): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', start, end));
  } catch {
    return undefined;
  }
}
