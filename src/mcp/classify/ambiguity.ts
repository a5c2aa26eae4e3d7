/**
 * Detects messages that two servers may read differently: some match member names without regard to case (Go's
 * encoding/json does), and of two members with one name some take the first, some the last. A filter, an audit or a
 * translation must act on the same value that the server reads.
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

/** Members that the specification, in any revision, defines for the params of clients' messages. */
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
 * Returns true if the params of a client's message, or the `_meta` in them, have a member that occurs twice or looks
 * like another. Members of the JSON-RPC envelope were checked when the message was read. For methods that the
 * specification does not define only `_meta` is checked, because their params are unknown.
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

/** Returns the tool that a `tools/call` names, or undefined for another message or an ambiguous name. */
export function readToolName(frame: Frame): string | undefined {
  if (frame.method !== CALL_TOOL) return undefined;
  const name = findUnmistakable(frame, frame.payloadStart, 'name');
  if (typeof name !== 'object' || frame.bytes[name.start] !== QUOTE) return undefined;
  return decodeString(frame.bytes, name.start, name.end);
}
