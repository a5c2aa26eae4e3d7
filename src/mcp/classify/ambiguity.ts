/**
 * Messages that two servers may read in two ways: some match the names of members without regard to case (Go's
 * encoding/json does), and of two members with one name some take the first, some the last. Where something depends on
 * what a client's message says, be it a filter, an audit or a translation, it must be what the server reads.
 */
import type { Frame } from '../../wire/frame.ts';
import { OPEN_BRACE, QUOTE } from '../../wire/json/ascii.ts';
import { findAllUnmistakable, findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import {
  META,
  META_CLIENT_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_PROTOCOL_VERSION,
  META_RELATED_TASK,
} from '../vocabulary/meta.ts';
import { CALL_TOOL, isClientNotification, isSpecified } from '../vocabulary/methods.ts';

/** Members of the params of what clients send by the specification, of any revision. */
const PARAMS = [
  'name',
  'arguments',
  'uri',
  'cursor',
  'level',
  'ref',
  'argument',
  'context',
  'requestId',
  'progressToken',
  'protocolVersion',
  'capabilities',
  'clientInfo',
  'notifications',
  'task',
  'taskId',
  'inputResponses',
  'requestState',
];

const META_MEMBERS = [
  'progressToken',
  META_PROTOCOL_VERSION,
  META_CLIENT_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_RELATED_TASK,
];

const ONLY_META = [META];
const PARAMS_AND_META = [META, ...PARAMS];

/**
 * Has a request or notification of a client a member in its params, or in the `_meta` of those, that is there twice or
 * looks like another one? Members of the envelope were checked when the message was read. What the params of other
 * methods may hold is known to nobody here; only their `_meta` is looked at.
 */
export function isAmbiguous(frame: Frame): boolean {
  const { bytes, method, payloadStart } = frame;
  if (method === undefined || payloadStart === -1) return false;
  const isKnown = isSpecified(method) || isClientNotification(method);
  const found = findAllUnmistakable(frame, payloadStart, isKnown ? PARAMS_AND_META : ONLY_META);
  if (found.includes('unclear')) return true;
  const meta = found[0];
  if (typeof meta !== 'object' || bytes[meta.start] !== OPEN_BRACE) return false;
  return findAllUnmistakable(frame, meta.start, META_MEMBERS).includes('unclear');
}

/** Which tool a `tools/call` names, as every server reads it. Undefined: it is another message, or that is not certain. */
export function readToolName(frame: Frame): string | undefined {
  if (frame.method !== CALL_TOOL) return undefined;
  const name = findUnmistakable(frame, frame.payloadStart, 'name');
  if (typeof name !== 'object' || frame.bytes[name.start] !== QUOTE) return undefined;
  return decodeString(frame.bytes, name.start, name.end);
}
