/** The text of a message as a recording has it: secrets hidden, and not longer than the limit. */
import type { Frame } from '../wire/frame.ts';
import { checkJson, type JsonLimits } from '../wire/json/check-json.ts';
import { characterStart } from '../wire/json/cut-string.ts';
import { skipValue } from '../wire/json/scan-json.ts';
import { hideSecrets } from './hide-secrets.ts';
import type { HiddenText } from './secret-texts.ts';

export interface MessageFormat {
  readonly secrets: 'hidden' | 'kept';
  /** Largest message that is recorded whole. */
  readonly maxMessageBytes: number;
}

export interface ShownMessage {
  readonly text: string;
  /** Number of hidden values. */
  readonly hidden: number;
  readonly isCut: boolean;
}

/** Only messages that a reader can parse are recorded. The depth is what readers can be expected to follow. */
const READABLE: JsonLimits = { maxDepth: 5000, maxValues: Number.POSITIVE_INFINITY };
/** Bytes after the cut in which the end of a secret is looked for, so that no beginning of one is shown. */
const BEYOND_CUT_BYTES = 8 * 1024;

/**
 * Returns the text of a message. Undefined if it is no valid JSON, which is possible where the bridge has read only the
 * envelope of a server's message.
 */
export function showMessage(frame: Frame, format: MessageFormat): ShownMessage | undefined {
  const { bytes } = frame;
  if (bytes.length > format.maxMessageBytes) return cutMessage(frame, format);
  if (checkJson(bytes, READABLE) !== 'valid') return undefined;
  const { text, hidden } = format.secrets === 'kept' ? asWritten(bytes) : hideSecrets(bytes);
  return { text, hidden, isCut: false };
}

/** Keeps the envelope whole, and the beginning of the payload as a text. Reads no more of the message than it shows. */
function cutMessage({ bytes, kind, id, method, payloadStart }: Frame, format: MessageFormat): ShownMessage {
  const isResponse = kind === 'result' || kind === 'error';
  const head =
    `{"jsonrpc":"2.0"${id === undefined ? '' : `,"id":${JSON.stringify(id)}`}` +
    `${method === undefined ? '' : `,"method":${JSON.stringify(method)}`}`;
  if (payloadStart === -1) return { text: `${head}}`, hidden: 0, isCut: true };
  const { maxMessageBytes, secrets } = format;
  const seen = bytes.subarray(payloadStart, payloadStart + maxMessageBytes + BEYOND_CUT_BYTES);
  const end = skipValue(seen, 0);
  const payload = seen.subarray(0, end === -1 ? characterStart(seen, 0, seen.length) : end);
  const part = kind === 'error' ? 'data' : 'payload';
  const { text, hidden } = secrets === 'kept' ? asWritten(payload) : hideSecrets(payload, part);
  // A text with as many characters as bytes has only characters of one byte.
  const isAscii = hidden === 0 && text.length === payload.length;
  const maxBytes = Math.max(0, maxMessageBytes - head.length);
  const shown = JSON.stringify(isAscii ? text.slice(0, maxBytes) : beginningOf(text, maxBytes));
  return { text: `${head},"${isResponse ? kind : 'params'}":${shown}}`, hidden, isCut: true };
}

function asWritten(json: Buffer): HiddenText {
  return { text: json.toString('utf8'), hidden: 0 };
}

function beginningOf(text: string, maxBytes: number): string {
  // A character has at least one byte, and usually no more.
  const beginning = text.slice(0, maxBytes);
  if (Buffer.byteLength(beginning) <= maxBytes) return beginning;
  const bytes = Buffer.from(beginning);
  return bytes.toString('utf8', 0, characterStart(bytes, 0, maxBytes));
}
