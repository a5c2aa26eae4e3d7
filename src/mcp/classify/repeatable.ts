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
 * Does it no harm to send this request twice? It only reads, and does not carry what was asked of a person: a server
 * may take that once. [spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow]
 */
export function onlyReads(frame: Frame): boolean {
  const { kind, method = '' } = frame;
  const isReading = isCacheable(method) || method === COMPLETE || method === GET_PROMPT || method === LISTEN;
  const carries = (member: string): boolean => findUnmistakable(frame, frame.payloadStart, member) !== undefined;
  return kind === 'request' && isReading && !carries('inputResponses') && !carries('requestState');
}

/** Requests that leave a session as they found it, or as the first of two had left it. */
const setting: ReadonlySet<string> = new Set([PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE]);

/**
 * Does it no harm to send this message of a client twice? A second answer is one to a request that is not open, which a server
 * ignores; a second notification says what is true still.
 */
export function isRepeatable(frame: Frame): boolean {
  const { kind, method = '' } = frame;
  if (kind === 'request') return onlyReads(frame) || setting.has(method);
  return frame.isResponse || isClientNotification(method);
}
