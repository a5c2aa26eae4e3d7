/** Errors of one era as the other one says them. */
import { CALL_TOOL, GET_PROMPT, READ_RESOURCE } from './methods.ts';
import { asFields, type Fields } from './payload.ts';
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
} from './rpc-codes.ts';
import type { RpcError } from './rpc-errors.ts';

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
 * where the envelope is at fault, which the code does not tell: validate-modern.ts.
 * [spec 2026-07-28 transports/streamable-http]
 */
export function modernHttpStatus(code: number): number {
  if (code === METHOD_NOT_FOUND) return 404;
  return badRequests.has(code) ? 400 : 200;
}
