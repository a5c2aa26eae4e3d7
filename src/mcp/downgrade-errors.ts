/** Errors for clients that do not know their code. */
import type { Frame } from '../wire/frame.ts';
import { idToken } from '../wire/splice.ts';
import { errorFrame } from '../wire/write-message.ts';
import { readFields, showText } from './payload.ts';
import { INTERNAL_ERROR, URL_ELICITATION_REQUIRED } from './rpc-codes.ts';

const CODE = Buffer.from(String(URL_ELICITATION_REQUIRED));

/** A server's error for a client that cannot be sent to a URL: it can read what it cannot act upon. */
export function withoutUrlElicitation(frame: Frame): Frame {
  if (frame.kind !== 'error' || !frame.bytes.includes(CODE)) return frame;
  const { code, message, data } = readFields(frame, ['code', 'message', 'data']);
  if (code !== URL_ELICITATION_REQUIRED) return frame;
  const error = { code: INTERNAL_ERROR, message: showText(message), ...(data !== undefined && { data }) };
  return errorFrame(idToken(frame), error);
}
