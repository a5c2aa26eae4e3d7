/** The codes of JSON-RPC errors, by the names the specifications give them. Where they mean what: errors.ts in translate/. */

/** [JSON-RPC 2.0 §5.1] */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/** What the official SDKs say of trouble with a session, of the range that each server may use as it likes. */
export const SESSION_ERROR = -32000;
export const SESSION_NOT_FOUND = -32001;

/** [spec 2026-07-28 schema] Over HTTP all three come with status 400. */
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_REVISION = -32022;

/** [spec 2025-11-25 server/resources#error-handling] What earlier revisions say, and modern servers must not. */
export const RESOURCE_NOT_FOUND = -32002;
/** [spec 2025-11-25 client/elicitation#url-elicitation-required-error] Of that revision only. */
export const URL_ELICITATION_REQUIRED = -32042;

/**
 * The part of the server range that only the specification may give out.
 * [spec 2026-07-28 basic#error-codes]
 */
export function isReservedCode(code: number): boolean {
  return code <= -32020 && code >= -32099;
}
