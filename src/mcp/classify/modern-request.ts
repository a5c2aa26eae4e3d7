/**
 * What makes a request one of the modern era: the checks that it has to pass, and over HTTP the headers that repeat what
 * its body says.
 */
import type { Frame } from '../../wire/frame.ts';
import { QUOTE } from '../../wire/json/ascii.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  type HeaderLine,
  type HeaderMap,
  isExpressible,
  NO_UNICODE,
  trimHeaderValue,
} from '../vocabulary/header-value.ts';
import {
  METHOD_HEADER,
  METHOD_HEADER_OUT,
  NAME_HEADER,
  NAME_HEADER_OUT,
  PROTOCOL_VERSION_HEADER,
  PROTOCOL_VERSION_HEADER_OUT,
} from '../vocabulary/headers.ts';
import { CALL_TOOL, GET_PROMPT, READ_RESOURCE } from '../vocabulary/methods.ts';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  UNSUPPORTED_REVISION,
} from '../vocabulary/rpc-codes.ts';
import { findUnmistakable } from './look-alikes.ts';
import { type MetadataReader, type RequestMetadata, readRequestMetadata } from './request-metadata.ts';

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
