/**
 * Derives the era of a server from the outcome of a probe. Pure: the caller decides how often, how long and in which
 * order to probe. [spec 2026-07-28 transports/stdio#backward-compatibility,
 * transports/streamable-http#backward-compatibility]
 */

import { assertNever } from '../../errors.ts';
import { isStringArray, parseDiscovery } from '../vocabulary/discover.ts';
import { DISCOVER } from '../vocabulary/methods.ts';
import { asFields } from '../vocabulary/payload.ts';
import {
  eraOf,
  findCommonModern,
  findRevision,
  LATEST_MODERN_REVISION,
  type ModernRevisionId,
} from '../vocabulary/revisions.ts';
import {
  HEADER_MISMATCH,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  UNSUPPORTED_REVISION,
} from '../vocabulary/rpc-codes.ts';
import type { RpcError } from '../vocabulary/rpc-errors.ts';

/** The outcome of one request of a probe. */
export type ProbeOutcome =
  /** A JSON-RPC result. */
  | { readonly kind: 'result'; readonly result: unknown }
  /** A JSON-RPC error; over HTTP with the response's status. */
  | { readonly kind: 'error'; readonly error: RpcError; readonly http: HttpStatus | undefined }
  /** An HTTP response without a JSON-RPC message, whatever else it held. */
  | { readonly kind: 'status'; readonly http: HttpStatus }
  /**
   * The event stream of HTTP+SSE, which begins with `endpoint`: the response itself, or found beside a POST without
   * one.
   */
  | { readonly kind: 'http-sse' }
  /** No response before the timeout. */
  | { readonly kind: 'silence' }
  /** The process exited. */
  | { readonly kind: 'exited' }
  /** The connection broke before a response arrived. */
  | { readonly kind: 'lost' }
  /** No connection could be made: unknown host, connection refused or no TLS. */
  | { readonly kind: 'unreachable' };

export interface HttpStatus {
  readonly status: number;
  /** The delay in `Retry-After`. */
  readonly retryAfterMs: number | undefined;
}

export type ProbeVerdict =
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId; readonly isDraft: boolean }
  /** A modern server; probe again with this revision. */
  | { readonly kind: 'modern-retry'; readonly revision: ModernRevisionId }
  /**
   * A modern server that received a different request than was sent: an intermediary removes headers. Probe once more.
   */
  | { readonly kind: 'headers-lost' }
  /** A modern server that only supports revisions unknown here. */
  | { readonly kind: 'no-common-revision'; readonly supported: readonly string[] }
  /**
   * Try `initialize`. `weak`: the same server may give another verdict a minute later. `respawn`: the server must first
   * be started or connected to again.
   */
  | { readonly kind: 'legacy'; readonly confidence: 'firm' | 'weak'; readonly respawn: boolean }
  /** The server accepted the request without answering it, as the POST endpoint of HTTP+SSE does. */
  | { readonly kind: 'not-answering' }
  | { readonly kind: 'http-sse' }
  // The remaining verdicts say nothing about the era.
  | { readonly kind: 'unauthorized'; readonly status: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'failing' }
  | { readonly kind: 'unreachable' };

export interface ProbeContext {
  /** `pipe`: one connection for both eras, to a process or a listening server. */
  readonly carrier: 'pipe' | 'http';
  /** The revision the probe named. */
  readonly requested: string;
  /** True for the one repetition that `modern-retry` or `headers-lost` asks for. */
  readonly isRetry: boolean;
}

/**
 * Codes of the draft for header mismatch, missing capability and unsupported revision. Legacy SDKs also use -32001, for
 * "session not found".
 */
const DRAFT_CODES: ReadonlySet<number> = new Set([-32001, -32003, -32004]);

const LEGACY: ProbeVerdict = { kind: 'legacy', confidence: 'firm', respawn: false };
const ENDED_AT_IT: ProbeVerdict = { kind: 'legacy', confidence: 'firm', respawn: true };

/** Reads the outcome of `server/discover`. */
export function classifyProbe(outcome: ProbeOutcome, context: ProbeContext): ProbeVerdict {
  switch (outcome.kind) {
    case 'result':
      return classifyDiscovery(outcome.result);
    case 'error':
      return statusVerdict(outcome.http) ?? classifyError(outcome, context);
    case 'status':
      return statusVerdict(outcome.http) ?? LEGACY;
    case 'http-sse':
      return outcome;
    case 'silence':
      // Over HTTP the spec requires an error; on other transports some legacy servers ignore an unknown request.
      return context.carrier === 'pipe' ? LEGACY : { kind: 'failing' };
    case 'exited':
      return ENDED_AT_IT;
    case 'lost':
      // Some servers close the connection when they receive an unknown message, as others exit.
      return context.carrier === 'pipe' ? ENDED_AT_IT : { kind: 'failing' };
    case 'unreachable':
      return { kind: 'unreachable' };
    default:
      return assertNever(outcome);
  }
}

/** Verdicts for statuses that mean the same with any body. */
function statusVerdict(http: HttpStatus | undefined): ProbeVerdict | undefined {
  if (http === undefined) return undefined;
  const { status, retryAfterMs } = http;
  if (status === 202 || status === 204) return { kind: 'not-answering' };
  if (status === 401 || status === 403 || status === 407) return { kind: 'unauthorized', status };
  if (status === 408 || status === 429) return { kind: 'busy', retryAfterMs };
  if (status === 503 && retryAfterMs !== undefined) return { kind: 'busy', retryAfterMs };
  // 501 means that the server does not support POST, which is no temporary failure.
  return status >= 500 && status !== 501 ? { kind: 'failing' } : undefined;
}

function classifyDiscovery(result: unknown): ProbeVerdict {
  // A lax legacy server may answer an unknown request with any result.
  const supported = parseDiscovery(result)?.supportedVersions;
  if (supported === undefined) return LEGACY;
  const revision = findCommonModern(supported);
  if (revision !== undefined) return { kind: 'modern', revision, isDraft: false };
  return withoutCommonModern(supported);
}

function withoutCommonModern(supported: readonly string[]): ProbeVerdict {
  if (supported.some((id) => findRevision(id) !== undefined)) return LEGACY;
  return supported.some((id) => eraOf(id) === 'modern') ? { kind: 'no-common-revision', supported } : LEGACY;
}

type ErrorOutcome = Extract<ProbeOutcome, { kind: 'error' }>;

/** Never decides by the code alone, because a legacy server may use any code for anything. */
function classifyError({ error, http }: ErrorOutcome, context: ProbeContext): ProbeVerdict {
  const data = asFields(error.data) ?? {};
  switch (error.code) {
    case UNSUPPORTED_REVISION:
      return classifySupported(data.supported, context.isRetry);
    case HEADER_MISMATCH:
      if (http?.status !== 400) return LEGACY;
      return context.isRetry ? { kind: 'legacy', confidence: 'weak', respawn: false } : { kind: 'headers-lost' };
    case MISSING_CAPABILITY: {
      const isTold = context.carrier === 'pipe' || http?.status === 400;
      if (!isTold || asFields(data.requiredCapabilities) === undefined) return LEGACY;
      // A server that checks capabilities has already accepted the revision.
      const revision = findCommonModern([context.requested]) ?? LATEST_MODERN_REVISION;
      return { kind: 'modern', revision, isDraft: false };
    }
    default:
      return DRAFT_CODES.has(error.code) ? classifyDraft(data.supported) : LEGACY;
  }
}

function classifySupported(supported: unknown, isRetry: boolean): ProbeVerdict {
  if (!isStringArray(supported) || supported.length === 0) return LEGACY;
  const revision = findCommonModern(supported);
  if (revision === undefined) return withoutCommonModern(supported);
  // The server rejects a revision that it offers. Further retries would never end.
  return isRetry ? { kind: 'no-common-revision', supported } : { kind: 'modern-retry', revision };
}

function classifyDraft(supported: unknown): ProbeVerdict {
  if (!isStringArray(supported) || !supported.some((id) => eraOf(id) === 'modern')) return LEGACY;
  const revision = findCommonModern(supported);
  return revision === undefined
    ? { kind: 'no-common-revision', supported }
    : { kind: 'modern', revision, isDraft: true };
}

export interface RequestRefusal {
  readonly method: string | undefined;
  readonly status: number;
  /** The code of the JSON-RPC error in the response; undefined if there is none. */
  readonly code: unknown;
}

/**
 * Returns true if a modern server would not refuse a modern request like this. Another server may have replaced it, so
 * the caller probes again. Over HTTP a modern server answers with a code that JSON-RPC or the specification defines.
 */
export function isForeignRefusal({ method, status, code }: RequestRefusal): boolean {
  if (code === METHOD_NOT_FOUND) return method === DISCOVER;
  if (status < 400 || status >= 500 || isPassing(status)) return false;
  // Legacy servers reject a request without a session by a status alone, or with a code of their own.
  return typeof code !== 'number' || (code <= -32000 && code > HEADER_MISMATCH);
}

/** Statuses that depend on the caller or the moment rather than on the server's era. */
function isPassing(status: number): boolean {
  const kind = statusVerdict({ status, retryAfterMs: undefined })?.kind;
  return kind === 'unauthorized' || kind === 'busy';
}

export type InitializeVerdict =
  /** `revision` is the server's choice; undefined if it named none. */
  | { readonly kind: 'accepted'; readonly revision: string | undefined }
  /** A modern server that names its revisions. */
  | { readonly kind: 'modern'; readonly supported: readonly string[] }
  /** The server understood `initialize` and rejected it: the transport is right, but no session can be opened. */
  | { readonly kind: 'refused' }
  /** The URL is no MCP endpoint that accepts an `initialize` posted like this. */
  | { readonly kind: 'elsewhere' }
  | Extract<ProbeVerdict, { kind: 'http-sse' | 'unauthorized' | 'busy' | 'failing' | 'unreachable' }>;

/** Reads the outcome of `initialize`, sent as every legacy revision sends it. */
export function classifyInitialize(outcome: ProbeOutcome): InitializeVerdict {
  switch (outcome.kind) {
    case 'result': {
      const chosen = asFields(outcome.result)?.protocolVersion;
      return { kind: 'accepted', revision: typeof chosen === 'string' ? chosen : undefined };
    }
    case 'error':
      return initializeStatus(outcome.http) ?? classifyRefusal(outcome);
    case 'status':
      return initializeStatus(outcome.http) ?? { kind: 'elsewhere' };
    case 'http-sse':
      return outcome;
    case 'silence':
    case 'exited':
    case 'lost':
      return { kind: 'failing' };
    case 'unreachable':
      return { kind: 'unreachable' };
    default:
      return assertNever(outcome);
  }
}

function initializeStatus(http: HttpStatus | undefined): InitializeVerdict | undefined {
  const verdict = statusVerdict(http);
  switch (verdict?.kind) {
    case 'unauthorized':
    case 'busy':
    case 'failing':
      return verdict;
    case 'not-answering':
      return { kind: 'elsewhere' };
    default:
      return undefined;
  }
}

/** [spec 2026-07-28 versioning] a modern server should name its revisions in any answer to `initialize`. */
function classifyRefusal({ error, http }: ErrorOutcome): InitializeVerdict {
  const supported = asFields(error.data)?.supported;
  if (error.code === UNSUPPORTED_REVISION && isStringArray(supported)) {
    const isModern = supported.some((id) => eraOf(id) === 'modern');
    if (isModern && !supported.some((id) => eraOf(id) === 'legacy')) return { kind: 'modern', supported };
  }
  return http === undefined || http.status === 200 ? { kind: 'refused' } : { kind: 'elsewhere' };
}
