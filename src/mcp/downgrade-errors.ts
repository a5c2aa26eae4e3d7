/** Errors for clients of a revision that does not know their code. */
import type { Frame } from '../wire/frame.ts';
import { idToken } from '../wire/splice.ts';
import { errorFrame } from '../wire/write-message.ts';
import { readPayload } from './payload.ts';
import { featuresOf } from './revision-features.ts';
import type { RevisionId } from './revisions.ts';
import { INTERNAL_ERROR, URL_ELICITATION_REQUIRED } from './rpc-codes.ts';

const CODE = Buffer.from(String(URL_ELICITATION_REQUIRED));

/** A server's error for a client of an older revision: it can read what it cannot act upon. */
export function downgradeError(frame: Frame, clientRevision: RevisionId): Frame {
  if (featuresOf(clientRevision).elicitation === 'modes' || !frame.bytes.includes(CODE)) return frame;
  const { code, message, data } = readPayload(frame) ?? {};
  if (code !== URL_ELICITATION_REQUIRED) return frame;
  const error = { code: INTERNAL_ERROR, message: String(message), ...(data !== undefined && { data }) };
  return errorFrame(idToken(frame), error);
}
