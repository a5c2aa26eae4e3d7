/** Builds the bridge's own messages. */
import { decodeToken, encodeId, Frame, type FrameKind, type JsonRpcId } from './frame.ts';

/** The `error` member of a response. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** An id, or its raw token, which is written byte for byte. */
export type IdOrToken = JsonRpcId | Buffer;

/** `{"jsonrpc":"2.0","id":…,"method":…,"params":…}` */
export function requestFrame(id: IdOrToken, method: string, params?: object): Frame {
  return buildFrame({ kind: 'request', id, method, payload: params && ['params', params] });
}

/** `{"jsonrpc":"2.0","method":…,"params":…}` */
export function notificationFrame(method: string, params?: object): Frame {
  return buildFrame({ kind: 'notification', id: undefined, method, payload: params && ['params', params] });
}

/** `{"jsonrpc":"2.0","id":…,"result":…}` */
export function resultFrame(id: IdOrToken, result: unknown): Frame {
  return buildFrame({ kind: 'result', id, method: undefined, payload: ['result', result] });
}

/**
 * `{"jsonrpc":"2.0","id":…,"error":{…}}`. Without an id the member is left out.
 * [spec 2025-11-25 schema#jsonrpcerrorresponse] the id of an error may be absent, but is never null.
 */
export function errorFrame(id: IdOrToken | undefined, error: RpcError): Frame {
  const { code, message, data } = error;
  return buildFrame({ kind: 'error', id, method: undefined, payload: ['error', { code, message, data }] });
}

interface MessageParts {
  readonly kind: FrameKind;
  readonly id: IdOrToken | undefined;
  readonly method: string | undefined;
  readonly payload: readonly [key: 'params' | 'result' | 'error', value: unknown] | undefined;
}

const VERSION = '{"jsonrpc":"2.0"';
const ID = ',"id":';

function buildFrame({ kind, id, method, payload }: MessageParts): Frame {
  const token = id === undefined ? undefined : Buffer.isBuffer(id) ? id : encodeId(id);
  const idStart = token === undefined ? -1 : VERSION.length + ID.length;
  const idEnd = token === undefined ? -1 : idStart + token.length;
  const methodMember = method === undefined ? '' : `,"method":${JSON.stringify(method)}`;
  const payloadKey = payload === undefined ? '' : `,"${payload[0]}":`;
  // JSON.stringify never writes a raw newline, so the frame is one line.
  const payloadText = payload === undefined ? '' : (JSON.stringify(payload[1]) ?? 'null');
  const beforePayload = `${methodMember}${payloadKey}`;
  const head = Buffer.from(token === undefined ? VERSION : `${VERSION}${ID}`);
  const rest = Buffer.from(`${beforePayload}${payloadText}}`);
  return new Frame(Buffer.concat(token === undefined ? [head, rest] : [head, token, rest]), {
    kind,
    id: Buffer.isBuffer(id) ? decodeToken(id) : id,
    idStart,
    idEnd,
    method,
    payloadStart:
      payload === undefined ? -1 : head.length + (token?.length ?? 0) + Buffer.byteLength(beforePayload, 'utf8'),
  });
}

const OPEN_ARRAY = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE_ARRAY = Buffer.from(']');

/** Joins messages to one JSON array, their bytes unchanged. */
export function joinArray(messages: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  for (const bytes of messages) parts.push(parts.length === 0 ? OPEN_ARRAY : COMMA, bytes);
  parts.push(CLOSE_ARRAY);
  return Buffer.concat(parts);
}

const CLOSE_OBJECT = Buffer.from('}');
const EMPTY_OBJECT = Buffer.from('{}');

/** Joins JSON texts to the members of one object, in the order of the map. */
export function joinMembers(members: ReadonlyMap<string, Buffer>): Buffer {
  if (members.size === 0) return EMPTY_OBJECT;
  const parts: Buffer[] = [];
  for (const [key, value] of members) {
    parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}${JSON.stringify(key)}:`), value);
  }
  parts.push(CLOSE_OBJECT);
  return Buffer.concat(parts);
}
