import type { Frame } from '../../wire/frame.ts';
import type { HeaderMap } from '../vocabulary/header-value.ts';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  UNSUPPORTED_REVISION,
} from '../vocabulary/rpc-codes.ts';
import type { MetadataReader } from './metadata-reader.ts';
import { type RequestMetadata, readRequestMetadata } from './request-metadata.ts';
import { checkStandardHeaders } from './standard-headers.ts';

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
