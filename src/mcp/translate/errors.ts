/** Translates errors of one era for a peer of the other. */

import { editFrame, type Frame, idToken, type JsonRpcId, withId, withPayload } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { CALL_TOOL, GET_PROMPT, READ_RESOURCE } from '../vocabulary/methods.ts';
import {
  asFields,
  encodeJson,
  type Fields,
  readField,
  readFields,
  readPayload,
  showText,
} from '../vocabulary/payload.ts';
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

/**
 * The request that a legacy server answered with an error. `isDeclared` is true if the server declared the capability
 * that the method belongs to; `uri` is that of a `resources/read`.
 */
export interface ModernErrorContext {
  readonly method: string;
  readonly isDeclared: boolean;
  readonly uri?: string | undefined;
}

export interface ModernError {
  readonly error: RpcError;
  /** The status of the HTTP response, if no stream has been started. */
  readonly httpStatus: number;
}

/**
 * Translates a legacy server's error for a modern client. `-32042` is normally translated before; one that gets here is
 * an ordinary error.
 */
export function toModernError(error: RpcError, context: ModernErrorContext): ModernError {
  const { code } = error;
  if (!Number.isInteger(code)) return inBand(replaceCode(error, INTERNAL_ERROR, { originalCode: code }));
  if (code === METHOD_NOT_FOUND) return toModernNotFound(error, context);
  if (code === RESOURCE_NOT_FOUND) return inBand(toModernMissing(error, context));
  // [spec 2026-07-28 basic#error-codes] only the specification defines reserved codes, so this server means something
  // else.
  if (isReservedCode(code)) return inBand(replaceCode(error, INTERNAL_ERROR, { originalCode: code }));
  return inBand(error);
}

function inBand(error: RpcError): ModernError {
  return { error, httpStatus: 200 };
}

/** [spec 2026-07-28 transports/streamable-http#protocol-version-header] an unknown method is answered with 404. */
function toModernNotFound(error: RpcError, { method, isDeclared }: ModernErrorContext): ModernError {
  // Some servers answer "method not found" for an unknown tool or prompt.
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

/** The request that a modern server answered with an error. `uri` is that of a `resources/read`. */
export interface LegacyErrorContext {
  readonly method: string;
  readonly uri?: string | undefined;
}

/** Translates a modern server's error for a legacy client, once the bridge itself can do nothing more about it. */
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
      // A missing capability is forwarded unchanged, because this client really lacks it.
      return error;
  }
}

/**
 * Translates a modern server's error for the legacy client that sent the request. An error without a numeric code and a
 * message is forwarded with the client's id only.
 */
export function legacyFailure(answer: Frame, request: Frame): Frame {
  const { code, message, data } = readFields(answer, ['code', 'message', 'data']);
  const { id = answer.id as JsonRpcId, method = '' } = request;
  if (typeof code !== 'number' || typeof message !== 'string') return withId(answer, id);
  const said = { code, message, ...(data !== undefined && { data }) };
  const uri = method === READ_RESOURCE ? readField(request, 'uri') : undefined;
  const meant = toLegacyError(said, { method, uri: typeof uri === 'string' ? uri : undefined });
  return translatedError(answer, { id, said, meant });
}

/** Replaces the code, and records the reason in `data.bridge`. */
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
 * The HTTP status for an error of the modern era, unless a stream has started. `-32602` gets 400 only for a faulty
 * envelope, which the code does not show; route-era.ts handles that case. [spec 2026-07-28 transports/streamable-http]
 */
export function modernHttpStatus(code: number): number {
  if (code === METHOD_NOT_FOUND) return 404;
  return badRequests.has(code) ? 400 : 200;
}

// ---- Translated errors, in which all unchanged parts stay byte for byte

/**
 * The error as read from a response (`said`) and its translation (`meant`). Unchanged values must be the same objects
 * in both, because they are compared by identity.
 */
export interface ErrorTranslation {
  readonly id: JsonRpcId;
  readonly said: RpcError;
  readonly meant: RpcError;
}

/** Builds the translated response from the error alone, because some servers write a null `result` beside it. */
export function translatedError(frame: Frame, { id, said, meant }: ErrorTranslation): Frame {
  const answer = errorFrame(id, meant);
  const written = readPayload(frame);
  const error = ObjectEditor.read(frame.bytes, frame.payloadStart, ['code', 'message', 'data']);
  // The payload is not JSON, or not an object that can be edited.
  if (written === undefined || error === undefined) return answer;
  if (written.code !== meant.code) error.set('code', encodeJson(meant.code));
  if (written.message !== meant.message) error.set('message', encodeJson(meant.message));
  if (said.data !== meant.data) changeData(frame.bytes, error, [said.data, meant.data]);
  const { bytes, payloadStart } = editFrame(frame, error.edits());
  return withPayload(answer, bytes.subarray(payloadStart, skipValue(bytes, payloadStart)));
}

function changeData(bytes: Buffer, error: ObjectEditor, [said, meant]: readonly [unknown, unknown]): void {
  const [before, after] = [asFields(said), asFields(meant)];
  const changed = Object.keys(after ?? {}).filter((key) => !isSame(key, before ?? {}, after ?? {}));
  const data = before && after && ObjectEditor.read(bytes, error.value('data')?.start ?? -1, changed);
  if (data === undefined) return error.set('data', encodeJson(meant));
  for (const key of changed) data.set(key, encodeJson(after?.[key]));
  error.edit('data', data.edits());
}

function isSame(key: string, before: Fields, after: Fields): boolean {
  return Object.hasOwn(before, key) && before[key] === after[key];
}

// ---- Errors for clients that do not know their code.

const CODE = Buffer.from(String(URL_ELICITATION_REQUIRED));

/**
 * Changes the code of a URL elicitation error for a client that cannot open URLs. The client can still show its
 * message.
 */
export function withoutUrlElicitation(frame: Frame): Frame {
  if (frame.kind !== 'error' || !frame.bytes.includes(CODE)) return frame;
  const { code, message, data } = readFields(frame, ['code', 'message', 'data']);
  if (code !== URL_ELICITATION_REQUIRED) return frame;
  const error = { code: INTERNAL_ERROR, message: showText(message), ...(data !== undefined && { data }) };
  return errorFrame(idToken(frame), error);
}
