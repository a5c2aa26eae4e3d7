import type { Frame } from '../../wire/frame.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import {
  COMPLETE,
  GET_PROMPT,
  isCacheable,
  isClientNotification,
  LISTEN,
  PING,
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../vocabulary/methods.ts';

/**
 * Returns true if this request can safely be sent twice: it only reads, and carries no answer of a user, which a server
 * may accept only once. [spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow]
 */
export function onlyReads(frame: Frame): boolean {
  const { kind, method = '' } = frame;
  const isReading = isCacheable(method) || method === COMPLETE || method === GET_PROMPT || method === LISTEN;
  const carries = (member: string): boolean => findUnmistakable(frame, frame.payloadStart, member) !== undefined;
  return kind === 'request' && isReading && !carries('inputResponses') && !carries('requestState');
}

/** Requests whose repetition leaves a session in the same state. */
const setting: ReadonlySet<string> = new Set([PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE]);

/**
 * Returns true if this message of a client can safely be sent twice. A server ignores a second response, since its
 * request is no longer open, and a repeated notification is still true.
 */
export function isRepeatable(frame: Frame): boolean {
  const { kind, method = '' } = frame;
  if (kind === 'request') return onlyReads(frame) || setting.has(method);
  return frame.isResponse || isClientNotification(method);
}
