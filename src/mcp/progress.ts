import { DIGIT_0, DIGIT_9 } from '../wire/ascii.ts';
import { findUniqueMember } from '../wire/find-member.ts';
import type { Frame } from '../wire/frame.ts';
import { readField } from './payload.ts';

/** Longer integers may not be exact. */
const MAX_DIGITS = 15;

/** How far a `notifications/progress` says its call has come; undefined: it does not. Parses only if it must. */
export function readProgress(frame: Frame): number | undefined {
  const { bytes, payloadStart, outline } = frame;
  const span = payloadStart === -1 ? undefined : findUniqueMember(bytes, payloadStart, 'progress', outline);
  const plain = typeof span === 'object' ? readDigits(bytes, span.start, span.end) : undefined;
  if (plain !== undefined) return plain;
  const progress = readField(frame, 'progress');
  return typeof progress === 'number' ? progress : undefined;
}

/** Undefined: it is something else than a short row of digits. */
function readDigits(bytes: Buffer, start: number, end: number): number | undefined {
  if (end - start > MAX_DIGITS) return undefined;
  let value = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number; // within the value
    if (byte < DIGIT_0 || byte > DIGIT_9) return undefined;
    value = value * 10 + (byte - DIGIT_0);
  }
  return value;
}
