/**
 * Which era a message is of, who serves it where both are served, and whether a modern request is what its revision
 * demands.
 */
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
 * Does the message say of itself that it is modern? Exact, also for a key that is spelled with escapes or a `_meta`
 * that occurs twice; whether the envelope is a good one is another question.
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

/** Who serves what was posted to an endpoint of both eras. */
export type EraRoute =
  /** A modern request, to be checked by `validateModern`. */
  | { readonly kind: 'modern' }
  /** A notification of a modern client. Those of the specification mean nothing over HTTP. */
  | { readonly kind: 'modern-notification' }
  /** Opens a legacy session, whatever session it names. */
  | { readonly kind: 'initialize' }
  | { readonly kind: 'session'; readonly sessionId: string }
  /** An array of legacy messages. */
  | { readonly kind: 'batch'; readonly sessionId: string | undefined }
  /** A legacy message outside of any session. */
  | { readonly kind: 'sessionless' }
  | { readonly kind: 'refused'; readonly refusal: ModernRefusal };

/**
 * Decides by what the body says of itself. A header only tells apart those that say nothing: it may have been added or
 * taken out on the way. Over stdio there are none.
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

/** From a modern client, as its header says, but without an envelope. Never served as legacy. */
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

/** Does the header that says which revision is spoken name a modern one? */
export function namesModern(headers: HeaderMap): boolean {
  const value = headers[PROTOCOL_VERSION_HEADER];
  return typeof value === 'string' && eraOf(trimHeaderValue(value)) === 'modern';
}

// ---- Checking a modern request

/** An error to answer with; over HTTP under this status. */
export interface ModernRefusal {
  readonly httpStatus: number;
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface ModernRequest {
  /** Its envelope of JSON-RPC was checked already. */
  readonly frame: Frame;
  /** Undefined: it came over stdio, where nothing is said twice. */
  readonly headers: HeaderMap | undefined;
  readonly supportedRevisions: readonly string[];
  /** Undefined: who is asked next knows. */
  readonly isKnownMethod?: (method: string) => boolean;
  /** Knows earlier requests of the same clients. */
  readonly reader?: MetadataReader;
}

/**
 * The checks of a modern request, in the order in which a client learns most from the first that fails: a proxy that
 * took a header out must not look like a server of another revision, nor like one of the legacy era.
 * [spec 2026-07-28 transports/streamable-http#server-validation, basic#meta]
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

/** Which member of `params` the `Mcp-Name` header repeats. */
const nameMembers: ReadonlyMap<string, string> = new Map([
  [CALL_TOOL, 'name'],
  [GET_PROMPT, 'name'],
  [READ_RESOURCE, 'uri'],
  // [SEP-2663] the tasks extension
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** What the body says where `Mcp-Name` repeats it. */
type BodyName =
  | { readonly kind: 'text'; readonly member: string; readonly text: string }
  /** Different readers may read different names. */
  | { readonly kind: 'unclear'; readonly member: string };

/**
 * What a message is sent with. A name that is not beyond doubt has no header, and the server refuses the request for
 * it.
 */
export function standardHeaders(frame: Frame, revision: string): readonly HeaderLine[] {
  const headers: HeaderLine[] = [[PROTOCOL_VERSION_HEADER_OUT, encodeHeaderValue(revision)]];
  // The specification encodes no method. One that cannot be a plain value is none that a server knows.
  if (frame.method !== undefined) headers.push([METHOD_HEADER_OUT, encodeHeaderValue(frame.method)]);
  const name = readName(frame);
  if (name?.kind === 'text') headers.push([NAME_HEADER_OUT, encodeHeaderValue(name.text)]);
  return headers;
}

/** What is wrong with the headers of a request whose body names this revision, in English; undefined: nothing. */
export function checkStandardHeaders(frame: Frame, revision: string, headers: HeaderMap): string | undefined {
  return (
    checkPlain(PROTOCOL_VERSION_HEADER_OUT, headers[PROTOCOL_VERSION_HEADER], revision) ??
    checkPlain(METHOD_HEADER_OUT, headers[METHOD_HEADER], frame.method) ??
    checkName(headers[NAME_HEADER], readName(frame))
  );
}

function checkPlain(name: string, value: HeaderMap[string], expected: string | undefined): string | undefined {
  if (value === undefined) return `the ${name} header is missing`;
  const isEqual = typeof value === 'string' && trimHeaderValue(value) === expected;
  return isEqual ? undefined : `the ${name} header does not match the body`;
}

function checkName(value: HeaderMap[string], name: BodyName | undefined): string | undefined {
  // A body without a name is wrong in another way, which its server tells.
  if (name === undefined) return undefined;
  if (name.kind === 'unclear') return `params.${name.member} must occur once, and nothing that could be taken for it`;
  if (!isExpressible(name.text)) return `params.${name.member} ${NO_UNICODE}`;
  if (value === undefined) return `the ${NAME_HEADER_OUT} header is missing`;
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
