/**
 * The places inside a message that hold an id or a token of another message. Whoever rewrites ids must rewrite these,
 * and nothing outside this file knows where they are.
 */
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { decodeId } from '../wire/scan-envelope.ts';
import { findUniqueMember, type Span } from '../wire/scan-json.ts';

/** A correlator's token in the frame's bytes, with its decoded value. */
export interface Correlator {
  readonly start: number;
  readonly end: number;
  readonly value: JsonRpcId;
}

const PROGRESS_TOKEN = Buffer.from('"progressToken"');

/** `params._meta.progressToken` of a request. */
export function findProgressToken(frame: Frame): Correlator | undefined {
  // Most requests have none; a native search over the bytes says so at once. (A key spelled with escapes is missed:
  // the token then passes as it is and its progress finds no exchange.)
  if (frame.payloadStart < 0 || !frame.bytes.includes(PROGRESS_TOKEN, frame.payloadStart)) return undefined;
  const meta = member(frame.bytes, frame.payloadStart, '_meta');
  return meta === undefined ? undefined : correlator(frame.bytes, meta.start, 'progressToken');
}

/** `params.requestId` of `notifications/cancelled`. */
export function findCancelledId(frame: Frame): Correlator | undefined {
  return correlator(frame.bytes, frame.payloadStart, 'requestId');
}

/** `params.progressToken` of `notifications/progress`. */
export function findProgressOf(frame: Frame): Correlator | undefined {
  return correlator(frame.bytes, frame.payloadStart, 'progressToken');
}

function correlator(bytes: Buffer, objectStart: number, key: string): Correlator | undefined {
  const span = member(bytes, objectStart, key);
  if (span === undefined) return undefined;
  const value = decodeId(bytes, span.start, span.end);
  return value === undefined ? undefined : { start: span.start, end: span.end, value };
}

/** A key that occurs twice is treated as absent: whoever reads the other one must not be led astray. */
function member(bytes: Buffer, objectStart: number, key: string): Span | undefined {
  if (objectStart < 0 || bytes[objectStart] !== 0x7b) return undefined;
  const span = findUniqueMember(bytes, objectStart, key);
  return span === 'duplicate' ? undefined : span;
}
