/**
 * What an answer, or the lack of one, says about the era of a server. Pure: the driver that asked decides how often,
 * how long and in which order. [spec 2026-07-28 transports/stdio#backward-compatibility,
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

/** What came of one question. */
export type ProbeOutcome =
  /** A JSON-RPC result. */
  | { readonly kind: 'result'; readonly result: unknown }
  /** A JSON-RPC error; over HTTP with the response's status. */
  | { readonly kind: 'error'; readonly error: RpcError; readonly http: HttpStatus | undefined }
  /** An HTTP response without a JSON-RPC message, whatever else it held. */
  | { readonly kind: 'status'; readonly http: HttpStatus }
  /** The event stream of HTTP+SSE, which begins with `endpoint`; in place of an answer, or beside a POST without one. */
  | { readonly kind: 'http-sse' }
  /** Nothing came in time. */
  | { readonly kind: 'silence' }
  /** The process ended. */
  | { readonly kind: 'exited' }
  /** The connection broke before there was an answer. */
  | { readonly kind: 'lost' }
  /** There was no connection: no such name, nobody listens, no TLS. */
  | { readonly kind: 'unreachable' };

export interface HttpStatus {
  readonly status: number;
  /** The pause that `Retry-After` asks for. */
  readonly retryAfterMs: number | undefined;
}

export type ProbeVerdict =
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId; readonly isDraft: boolean }
  /** Modern; ask again, naming this revision. */
  | { readonly kind: 'modern-retry'; readonly revision: ModernRevisionId }
  /** Modern, but it got another request than was sent: something on the way takes headers out. Ask once more. */
  | { readonly kind: 'headers-lost' }
  /** Modern, and speaks only revisions that are not known here. */
  | { readonly kind: 'no-common-revision'; readonly supported: readonly string[] }
  /**
   * Try `initialize`. `weak`: the same server may answer otherwise a minute later. `respawn`: it has to be started
   * or connected to again for that.
   */
  | { readonly kind: 'legacy'; readonly confidence: 'firm' | 'weak'; readonly respawn: boolean }
  /** It took the question without answering it, as the POST half of HTTP+SSE does. */
  | { readonly kind: 'not-answering' }
  /** It is a server of HTTP+SSE. */
  | { readonly kind: 'http-sse' }
  // The rest says nothing about the era.
  | { readonly kind: 'unauthorized'; readonly status: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'failing' }
  | { readonly kind: 'unreachable' };

export interface ProbeContext {
  /** `pipe`: a connection that carries both eras, to a process or to whoever listens. */
  readonly carrier: 'pipe' | 'http';
  /** The revision the probe named. */
  readonly requested: string;
  /** This was the one repetition that `modern-retry` or `headers-lost` asks for. */
  readonly isRetry: boolean;
}

/** What builds of the draft called the three. -32001 is also what legacy SDKs say for "session not found". */
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
      // Over HTTP the spec wants an error; elsewhere silence is how some legacy servers refuse.
      return context.carrier === 'pipe' ? LEGACY : { kind: 'failing' };
    case 'exited':
      return ENDED_AT_IT;
    case 'lost':
      // A server may end its connection at a message it does not know, as others exit.
      return context.carrier === 'pipe' ? ENDED_AT_IT : { kind: 'failing' };
    case 'unreachable':
      return { kind: 'unreachable' };
    default:
      return assertNever(outcome);
  }
}

/** Statuses that mean the same whatever the body says. */
function statusVerdict(http: HttpStatus | undefined): ProbeVerdict | undefined {
  if (http === undefined) return undefined;
  const { status, retryAfterMs } = http;
  if (status === 202 || status === 204) return { kind: 'not-answering' };
  if (status === 401 || status === 403 || status === 407) return { kind: 'unauthorized', status };
  if (status === 408 || status === 429) return { kind: 'busy', retryAfterMs };
  if (status === 503 && retryAfterMs !== undefined) return { kind: 'busy', retryAfterMs };
  // 501 is no trouble but a refusal: this server does not do POST.
  return status >= 500 && status !== 501 ? { kind: 'failing' } : undefined;
}

function classifyDiscovery(result: unknown): ProbeVerdict {
  // A lax legacy server may answer anything to anything.
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

/** Never on the code alone: a legacy server may use any of them for anything. */
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
      // It went on to capabilities, so it took the revision.
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
  // It refuses what it offers; asking on would never end.
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
  /** The code of the JSON-RPC error that answered the request; undefined: the response held none. */
  readonly code: unknown;
}

/**
 * Would a modern server refuse a request of its era like this? If not, it may have been replaced by another one; asking
 * it tells. Over HTTP a modern server answers with an error of JSON-RPC or of the specification's own.
 */
export function isForeignRefusal({ method, status, code }: RequestRefusal): boolean {
  if (code === METHOD_NOT_FOUND) return method === DISCOVER;
  if (status < 400 || status >= 500 || isPassing(status)) return false;
  // What legacy servers say to a request that is of no session.
  return typeof code !== 'number' || (code <= -32000 && code > HEADER_MISMATCH);
}

/** Statuses that say something about the caller or the moment. */
function isPassing(status: number): boolean {
  const kind = statusVerdict({ status, retryAfterMs: undefined })?.kind;
  return kind === 'unauthorized' || kind === 'busy';
}

export type InitializeVerdict =
  /** `revision` is what the server chose; undefined when it did not say. */
  | { readonly kind: 'accepted'; readonly revision: string | undefined }
  /** A modern server that says so. */
  | { readonly kind: 'modern'; readonly supported: readonly string[] }
  /** It was understood and turned down: this is the transport, but not a way in. */
  | { readonly kind: 'refused' }
  /** Whatever is there, it is no MCP endpoint that takes `initialize` like this. */
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

/** [spec 2026-07-28 versioning] a modern server should name its revisions in whatever it answers to `initialize`. */
function classifyRefusal({ error, http }: ErrorOutcome): InitializeVerdict {
  const supported = asFields(error.data)?.supported;
  if (error.code === UNSUPPORTED_REVISION && isStringArray(supported)) {
    const isModern = supported.some((id) => eraOf(id) === 'modern');
    if (isModern && !supported.some((id) => eraOf(id) === 'legacy')) return { kind: 'modern', supported };
  }
  return http === undefined || http.status === 200 ? { kind: 'refused' } : { kind: 'elsewhere' };
}
