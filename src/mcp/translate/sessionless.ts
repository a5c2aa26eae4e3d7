/**
 * Requests of legacy clients without a session. The modern era has such requests, since each one is independent there.
 * The bridge therefore serves them as modern requests of a client that declares nothing, and translates the answer
 * back.
 */
import { type Frame, idToken } from '../../wire/frame.ts';
import { OPEN_BRACE } from '../../wire/json/ascii.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { resultTypeOf } from '../classify/input-required.ts';
import { type RequestMetadata, stampMetadata } from '../classify/request-metadata.ts';
import { LATEST_MODERN_REVISION, type RevisionId } from '../vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../vocabulary/rpc-codes.ts';
import { downgradeResult } from './downgrade-results.ts';
import { legacyFailure } from './errors.ts';
import { toLegacyResult } from './results.ts';

/** Metadata of a client that declared nothing. */
export const UNDECLARED: RequestMetadata = {
  revision: LATEST_MODERN_REVISION,
  capabilities: {},
  clientInfo: undefined,
  logLevel: undefined,
};

/** The request as a modern client sends it. Undefined if its params are no object and cannot hold the metadata. */
export function toModernRequest(request: Frame): Frame | undefined {
  const stamped = stampMetadata(request, UNDECLARED);
  return stamped.bytes[stamped.payloadStart] === OPEN_BRACE ? stamped : undefined;
}

/** The answer to that request for a client of this revision. Other messages are returned unchanged. */
export function toSessionlessAnswer(frame: Frame, request: Frame, clientRevision: RevisionId): Frame {
  if (!frame.isResponse) return frame;
  if (frame.kind === 'error') return legacyFailure(frame, request);
  if (resultTypeOf(frame) !== 'complete') return errorFrame(idToken(request), NEEDS_SESSION);
  const { method = '' } = request;
  return downgradeResult(toLegacyResult(frame, method), { method, clientRevision });
}

const NEEDS_SESSION = {
  code: INTERNAL_ERROR,
  message:
    'The server asks its client for something in this call, and only a client with a session can be asked: send initialize, and repeat the Mcp-Session-Id header of its response.',
};
