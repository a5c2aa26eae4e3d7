/** Errors of one era as the other one says them. */

import { editFrame, type Frame, idToken, type JsonRpcId, withId, withPayload } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { CALL_TOOL, GET_PROMPT, READ_RESOURCE } from '../vocabulary/methods.ts';
import { asFields, type Fields, readField, readFields, readPayload, showText } from '../vocabulary/payload.ts';
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  isReservedCode,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  PARSE_ERROR,
  RESOURCE_NOT_FOUND,
  UNSUPPORTED_REVISION,
  URL_ELICITATION_REQUIRED,
} from '../vocabulary/rpc-codes.ts';
import type { RpcError } from '../vocabulary/rpc-errors.ts';

/** What a legacy server was asked. */
export interface ModernErrorContext {
  readonly method: string;
  /** The server declared the capability that the method belongs to. */
  readonly isDeclared: boolean;
  /** The URI of a `resources/read`. */
  readonly uri?: string | undefined;
}

export interface ModernError {
  readonly error: RpcError;
  /** The status of the HTTP response, if no stream has been started. */
  readonly httpStatus: number;
}

/**
 * A legacy server's error for a modern client. `-32042` has a translation of its own; what gets here of it is nothing
 * but an error.
 */
export function toModernError(error: RpcError, context: ModernErrorContext): ModernError {
  const { code } = error;
  if (!Number.isInteger(code)) return inBand(replaceCode(error, INTERNAL_ERROR, { originalCode: code }));
  if (code === METHOD_NOT_FOUND) return toModernNotFound(error, context);
  if (code === RESOURCE_NOT_FOUND) return inBand(toModernMissing(error, context));
  // [spec 2026-07-28 basic#error-codes] only the specification gives these a meaning, and it is not the server's.
  if (isReservedCode(code)) return inBand(replaceCode(error, INTERNAL_ERROR, { originalCode: code }));
  return inBand(error);
}

function inBand(error: RpcError): ModernError {
  return { error, httpStatus: 200 };
}

/** [spec 2026-07-28 transports/streamable-http#protocol-version-header] a method that is not there comes with 404. */
function toModernNotFound(error: RpcError, { method, isDeclared }: ModernErrorContext): ModernError {
  // Some servers know no such method when they know no such tool.
  const isName = isDeclared && (method === CALL_TOOL || method === GET_PROMPT);
  return isName ? inBand({ ...error, code: INVALID_PARAMS }) : { error, httpStatus: 404 };
}

/** [spec 2026-07-28 server/resources#error-handling] */
function toModernMissing(error: RpcError, { method, uri }: ModernErrorContext): RpcError {
  if (method !== READ_RESOURCE) return replaceCode(error, INTERNAL_ERROR, { originalCode: RESOURCE_NOT_FOUND });
  const data = asFields(error.data);
  if (uri === undefined || (error.data !== undefined && data === undefined)) return { ...error, code: INVALID_PARAMS };
  return { ...error, code: INVALID_PARAMS, data: { ...data, uri } };
}

/** What a modern server was asked. */
export interface LegacyErrorContext {
  readonly method: string;
  /** The URI of a `resources/read`. */
  readonly uri?: string | undefined;
}

/** A modern server's error for a legacy client, after all that could be done about it was done. */
export function toLegacyError(error: RpcError, { method, uri }: LegacyErrorContext): RpcError {
  switch (error.code) {
    case INVALID_PARAMS: {
      const isMissing = method === READ_RESOURCE && uri !== undefined && asFields(error.data)?.uri === uri;
      return isMissing ? { ...error, code: RESOURCE_NOT_FOUND } : error;
    }
    case HEADER_MISMATCH:
      return replaceCode(error, INTERNAL_ERROR, { reason: 'upstream_header_mismatch', originalCode: error.code });
    case UNSUPPORTED_REVISION:
      return replaceCode(error, INTERNAL_ERROR, { reason: 'upstream_revision', originalCode: error.code });
    default:
      // A missing capability stays as it is: it says truly what this client lacks.
      return error;
  }
}

/** A modern server's error for the legacy client that sent the request; what is no error as JSON-RPC wants it stays as it is. */
export function legacyFailure(answer: Frame, request: Frame): Frame {
  const { code, message, data } = readFields(answer, ['code', 'message', 'data']);
  const { id = answer.id as JsonRpcId, method = '' } = request;
  if (typeof code !== 'number' || typeof message !== 'string') return withId(answer, id);
  const said = { code, message, ...(data !== undefined && { data }) };
  const uri = method === READ_RESOURCE ? readField(request, 'uri') : undefined;
  const meant = toLegacyError(said, { method, uri: typeof uri === 'string' ? uri : undefined });
  return translatedError(answer, { id, said, meant });
}

/** Gives the error another code, and says in `data.bridge` why. */
export function replaceCode(error: RpcError, code: number, bridge: Fields): RpcError {
  const data = asFields(error.data);
  const rest = error.data === undefined || data !== undefined ? bridge : { ...bridge, originalData: error.data };
  return { code, message: error.message, data: { ...data, bridge: rest } };
}

const badRequests: ReadonlySet<number> = new Set([
  PARSE_ERROR,
  INVALID_REQUEST,
  HEADER_MISMATCH,
  MISSING_CAPABILITY,
  UNSUPPORTED_REVISION,
]);

/**
 * The HTTP status that goes with an error of the modern era, as long as no stream has been started. `-32602` is 400
 * where the envelope is at fault, which the code does not tell: route-era.ts.
 * [spec 2026-07-28 transports/streamable-http]
 */
export function modernHttpStatus(code: number): number {
  if (code === METHOD_NOT_FOUND) return 404;
  return badRequests.has(code) ? 400 : 200;
}

// ---- Errors of one era as the other one has them: what both say alike stays byte for byte.

export interface ErrorTranslation {
  readonly id: JsonRpcId;
  /** What was read from the response. */
  readonly said: RpcError;
  /** What was made of it. Values that it has taken over are the very same ones. */
  readonly meant: RpcError;
}

/** Takes nothing but the error from the response: some servers write a `result` of null beside it. */
export function translatedError(frame: Frame, { id, said, meant }: ErrorTranslation): Frame {
  const answer = errorFrame(id, meant);
  const written = readPayload(frame);
  const error = ObjectEditor.read(frame.bytes, frame.payloadStart, ['code', 'message', 'data']);
  // Not JSON, or no error that could be edited.
  if (written === undefined || error === undefined) return answer;
  if (written.code !== meant.code) error.set('code', encode(meant.code));
  if (written.message !== meant.message) error.set('message', encode(meant.message));
  if (said.data !== meant.data) changeData(frame.bytes, error, [said.data, meant.data]);
  const { bytes, payloadStart } = editFrame(frame, error.edits());
  return withPayload(answer, bytes.subarray(payloadStart, skipValue(bytes, payloadStart)));
}

function changeData(bytes: Buffer, error: ObjectEditor, [said, meant]: readonly [unknown, unknown]): void {
  const [before, after] = [asFields(said), asFields(meant)];
  const changed = Object.keys(after ?? {}).filter((key) => !isSame(key, before ?? {}, after ?? {}));
  const data = before && after && ObjectEditor.read(bytes, error.value('data')?.start ?? -1, changed);
  if (data === undefined) return error.set('data', encode(meant));
  for (const key of changed) data.set(key, encode(after?.[key]));
  error.edit('data', data.edits());
}

function isSame(key: string, before: Fields, after: Fields): boolean {
  return Object.hasOwn(before, key) && before[key] === after[key];
}

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

// ---- Errors for clients that do not know their code.

const CODE = Buffer.from(String(URL_ELICITATION_REQUIRED));

/** A server's error for a client that cannot be sent to a URL: it can read what it cannot act upon. */
export function withoutUrlElicitation(frame: Frame): Frame {
  if (frame.kind !== 'error' || !frame.bytes.includes(CODE)) return frame;
  const { code, message, data } = readFields(frame, ['code', 'message', 'data']);
  if (code !== URL_ELICITATION_REQUIRED) return frame;
  const error = { code: INTERNAL_ERROR, message: showText(message), ...(data !== undefined && { data }) };
  return errorFrame(idToken(frame), error);
}
