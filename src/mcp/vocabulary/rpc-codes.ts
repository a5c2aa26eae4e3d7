/** JSON-RPC error codes by their names in the specifications. translate/errors.ts has their meaning in each era. */

/** [JSON-RPC 2.0 §5.1] */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/** The official SDKs' codes for session errors, from the range that each server may use freely. */
export const SESSION_ERROR = -32000;
export const SESSION_NOT_FOUND = -32001;

/** [spec 2026-07-28 schema] Over HTTP all three are sent with status 400. */
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_REVISION = -32022;

/** [spec 2025-11-25 server/resources#error-handling] Used by earlier revisions; modern servers must not send it. */
export const RESOURCE_NOT_FOUND = -32002;
/** [spec 2025-11-25 client/elicitation#url-elicitation-required-error] Only that revision has it. */
export const URL_ELICITATION_REQUIRED = -32042;

/**
 * Returns true for the part of the server range that only the specification may assign. [spec 2026-07-28
 * basic#error-codes]
 */
export function isReservedCode(code: number): boolean {
  return code <= -32020 && code >= -32099;
}
