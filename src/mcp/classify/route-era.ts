/** Determines the era of a message, routes it at an endpoint that serves both eras, and validates modern requests. */
import { Frame } from '../../wire/frame.ts';
import { QUOTE } from '../../wire/json/ascii.ts';
import { findMember, findUnmistakable, visitMembers } from '../../wire/json/outline.ts';
import { decodeString, isStringToken } from '../../wire/json/scan-json.ts';
import type { EnvelopeFault } from '../../wire/scan-envelope.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  type HeaderLine,
  type HeaderMap,
  isExpressible,
  METHOD_HEADER,
  METHOD_HEADER_OUT,
  missingHeader,
  NAME_HEADER,
  NAME_HEADER_OUT,
  NO_UNICODE,
  PROTOCOL_VERSION_HEADER,
  PROTOCOL_VERSION_HEADER_OUT,
  SESSION_ID_HEADER,
  trimHeaderValue,
} from '../vocabulary/headers.ts';
import { META, META_PROTOCOL_VERSION } from '../vocabulary/meta.ts';
import { CALL_TOOL, GET_PROMPT, INITIALIZE, READ_RESOURCE } from '../vocabulary/methods.ts';
import { eraOf } from '../vocabulary/revisions.ts';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  UNSUPPORTED_REVISION,
} from '../vocabulary/rpc-codes.ts';
import { type MetadataReader, type RequestMetadata, readRequestMetadata } from './request-metadata.ts';

/**
 * Returns true if the message declares a modern revision. Exact even if a key is spelled with escapes or `_meta` occurs
 * twice; the rest of the envelope is not validated.
 */
export function claimsModern(frame: Frame): boolean {
  const { bytes, payloadStart, outline } = frame;
  if (payloadStart === -1 || frame.isResponse || outline?.mayHoldMeta === false) return false;
  let isModern = false;
  visitMembers(bytes, payloadStart, outline, (keyStart, keyEnd, valueStart) => {
    const isMeta = isStringToken(bytes, keyStart, keyEnd, META);
    isModern = isMeta && findMember(bytes, valueStart, META_PROTOCOL_VERSION, outline) !== undefined;
    return !isModern;
  });
  return isModern;
}

/** The route of a message posted to an endpoint that serves both eras. */
export type EraRoute =
  /** A modern request; `validateModern` checks it. */
  | { readonly kind: 'modern' }
  /** A notification of a modern client. The notifications of the specification have no meaning over HTTP. */
  | { readonly kind: 'modern-notification' }
  /** Opens a legacy session, even if the request names a session. */
  | { readonly kind: 'initialize' }
  | { readonly kind: 'session'; readonly sessionId: string }
  /** An array of legacy messages. */
  | { readonly kind: 'batch'; readonly sessionId: string | undefined }
  /** A legacy message outside of any session. */
  | { readonly kind: 'sessionless' }
  | { readonly kind: 'refused'; readonly refusal: ModernRefusal };

/**
 * Routes a message by its body. A header decides only for bodies that declare nothing, because it may have been added
 * or removed on the way. Over stdio there are no headers.
 */
export function routeEra(message: Frame | readonly (Frame | EnvelopeFault)[], headers: HeaderMap): EraRoute {
  const sessionId = readSessionId(headers);
  if (!(message instanceof Frame)) return routeBatch(message, sessionId);
  if (claimsModern(message)) return { kind: message.kind === 'request' ? 'modern' : 'modern-notification' };
  if (message.kind === 'request' && message.method === INITIALIZE) return { kind: 'initialize' };
  if (sessionId !== undefined) return { kind: 'session', sessionId };
  return namesModern(headers) ? routeUnclaimed(message) : { kind: 'sessionless' };
}

/** [spec 2026-07-28 transports/streamable-http#sending-messages] a modern body is one message. */
function routeBatch(items: readonly (Frame | EnvelopeFault)[], sessionId: string | undefined): EraRoute {
  if (!items.some((item) => item instanceof Frame && claimsModern(item))) return { kind: 'batch', sessionId };
  return refuse(INVALID_REQUEST, 'a batch holds a modern message; modern messages are sent one by one');
}

/** Rejects a message whose header is modern but which has no envelope. Such a message is never served as legacy. */
function routeUnclaimed({ kind }: Frame): EraRoute {
  if (kind === 'notification') return { kind: 'modern-notification' };
  if (kind !== 'request') return refuse(INVALID_REQUEST, 'modern clients send no responses');
  return refuse(INVALID_PARAMS, `params._meta["${META_PROTOCOL_VERSION}"] is missing; expected a string`);
}

function refuse(code: number, message: string): EraRoute {
  return { kind: 'refused', refusal: { httpStatus: 400, code, message } };
}

function readSessionId(headers: HeaderMap): string | undefined {
  const value = headers[SESSION_ID_HEADER];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns true if the protocol version header names a modern revision. */
export function namesModern(headers: HeaderMap): boolean {
  const value = headers[PROTOCOL_VERSION_HEADER];
  return typeof value === 'string' && eraOf(trimHeaderValue(value)) === 'modern';
}

// ---- Checking a modern request

/** An error response; `httpStatus` is its status over HTTP. */
export interface ModernRefusal {
  readonly httpStatus: number;
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/**
 * A modern request to validate; its JSON-RPC envelope is already checked. `headers` is undefined over stdio, where no
 * header repeats the body. Without `isKnownMethod`, the server that gets the request judges the method. `reader`
 * remembers the envelopes of the same clients' earlier requests.
 */
export interface ModernRequest {
  readonly frame: Frame;
  readonly headers: HeaderMap | undefined;
  readonly supportedRevisions: readonly string[];
  readonly isKnownMethod?: (method: string) => boolean;
  readonly reader?: MetadataReader;
}

/**
 * Validates a modern request. The order of the checks tells a client the most: a header that a proxy removed must not
 * look like an unsupported revision, nor like a legacy server. [spec 2026-07-28
 * transports/streamable-http#server-validation, basic#meta]
 */
export function validateModern(request: ModernRequest): { readonly ok: RequestMetadata } | ModernRefusal {
  const { frame, headers, supportedRevisions, isKnownMethod, reader } = request;
  const { kind, method } = frame;
  if (kind !== 'request' || method === undefined) {
    return { httpStatus: 400, code: INVALID_REQUEST, message: `expected a request; this is a ${kind}` };
  }
  const metadata = reader === undefined ? readRequestMetadata(frame) : reader.read(frame);
  if ('fault' in metadata) return { httpStatus: 400, code: INVALID_PARAMS, message: metadata.fault };
  const { revision } = metadata;
  const mismatch = headers && checkStandardHeaders(frame, revision, headers);
  if (mismatch !== undefined) return { httpStatus: 400, code: HEADER_MISMATCH, message: mismatch };
  if (!supportedRevisions.includes(revision)) return unsupported(revision, supportedRevisions);
  if (isKnownMethod?.(method) === false) {
    return { httpStatus: 404, code: METHOD_NOT_FOUND, message: 'there is no such method in this revision' };
  }
  return { ok: metadata };
}

function unsupported(requested: string, supported: readonly string[]): ModernRefusal {
  return {
    httpStatus: 400,
    code: UNSUPPORTED_REVISION,
    message: `this revision is not supported; supported: ${supported.join(', ')}`,
    data: { supported, requested },
  };
}

// ---- The headers that every modern request over HTTP has, for those who do not read bodies.
// [spec 2026-07-28 transports/streamable-http#standard-request-headers]

/** The member of `params` that the `Mcp-Name` header repeats, by method. */
const nameMembers: ReadonlyMap<string, string> = new Map([
  [CALL_TOOL, 'name'],
  [GET_PROMPT, 'name'],
  [READ_RESOURCE, 'uri'],
  // [SEP-2663] the tasks extension
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** The value in the body that `Mcp-Name` repeats. `unclear`: different parsers may read different names. */
type BodyName =
  | { readonly kind: 'text'; readonly member: string; readonly text: string }
  | { readonly kind: 'unclear'; readonly member: string };

/** The standard headers to send with a message. An ambiguous name gets no header, so the server rejects the request. */
export function standardHeaders(frame: Frame, revision: string): readonly HeaderLine[] {
  const headers: HeaderLine[] = [[PROTOCOL_VERSION_HEADER_OUT, encodeHeaderValue(revision)]];
  // The specification has no encoding for methods. A method that needs one is unknown to every server.
  if (frame.method !== undefined) headers.push([METHOD_HEADER_OUT, encodeHeaderValue(frame.method)]);
  const name = readName(frame);
  if (name?.kind === 'text') headers.push([NAME_HEADER_OUT, encodeHeaderValue(name.text)]);
  return headers;
}

/**
 * Compares the standard headers with a body that names this revision. Returns the mismatch in English, or undefined.
 */
export function checkStandardHeaders(frame: Frame, revision: string, headers: HeaderMap): string | undefined {
  return (
    checkPlain(PROTOCOL_VERSION_HEADER_OUT, headers[PROTOCOL_VERSION_HEADER], revision) ??
    checkPlain(METHOD_HEADER_OUT, headers[METHOD_HEADER], frame.method) ??
    checkName(headers[NAME_HEADER], readName(frame))
  );
}

function checkPlain(name: string, value: HeaderMap[string], expected: string | undefined): string | undefined {
  if (value === undefined) return missingHeader(name);
  const isEqual = typeof value === 'string' && trimHeaderValue(value) === expected;
  return isEqual ? undefined : `the ${name} header does not match the body`;
}

function checkName(value: HeaderMap[string], name: BodyName | undefined): string | undefined {
  // The server rejects a body without a name for another reason, so the header is not checked.
  if (name === undefined) return undefined;
  if (name.kind === 'unclear') return `params.${name.member} must occur once, and nothing that could be taken for it`;
  if (!isExpressible(name.text)) return `params.${name.member} ${NO_UNICODE}`;
  if (value === undefined) return missingHeader(NAME_HEADER_OUT);
  const decoded = typeof value === 'string' ? decodeHeaderValue(value) : undefined;
  if (decoded === undefined) return `the ${NAME_HEADER_OUT} header is not encoded as it should be`;
  return decoded === name.text ? undefined : `the ${NAME_HEADER_OUT} header does not match params.${name.member}`;
}

function readName(frame: Frame): BodyName | undefined {
  const { bytes, method, payloadStart } = frame;
  const member = method === undefined ? undefined : nameMembers.get(method);
  if (member === undefined) return undefined;
  const span = findUnmistakable(frame, payloadStart, member);
  if (span === 'unclear') return { kind: 'unclear', member };
  if (span === undefined || bytes[span.start] !== QUOTE) return undefined;
  const text = decodeString(bytes, span.start, span.end);
  return text === undefined ? undefined : { kind: 'text', member, text };
}
