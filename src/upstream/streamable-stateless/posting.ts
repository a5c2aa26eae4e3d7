/** Posts messages to a modern server, and interprets the end of a POST for its request. */
import { BridgeError } from '../../errors.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import type { HttpRequest } from '../../http/client/http-call.ts';
import { JSON_TYPE } from '../../http/headers.ts';
import { showUrl } from '../../http/shown-url.ts';
import { type RewrittenRequest, rewriteRequest } from '../../mcp/classify/correlators.ts';
import { onlyReads } from '../../mcp/classify/repeatable.ts';
import { standardHeaders } from '../../mcp/classify/route-era.ts';
import type { HeaderLine } from '../../mcp/vocabulary/headers.ts';
import { META_PROTOCOL_VERSION } from '../../mcp/vocabulary/meta.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import { LATEST_MODERN_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { Lane } from '../../relay/call.ts';
import { answersId, type Frame, withId } from '../../wire/frame.ts';
import { QUOTE } from '../../wire/json/ascii.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import { isBreak } from '../remote/answer-reader.ts';
import { type PostEnd, type Posting, useOfBody } from '../remote/posted-call.ts';
import type { Refusal } from '../remote/refusal.ts';
import { type ServerEnvironment, tracedHeaders } from '../remote/remote-environment.ts';
import { ACCEPT_ANSWER } from '../remote/session-key.ts';

/** Time that a response may stay open after everything needed has been received. Then its connection is closed. */
const LINGER_MS = 1000;

/**
 * Options and rules for all messages to a server. The response to a request holds its answer: a JSON text, or a stream for
 * this request alone, which cannot be resumed. [spec 2026-07-28 transports/streamable-http#receiving-messages]
 */
export function createPosting(environment: ServerEnvironment): Posting {
  return {
    environment,
    useOf: (head, frame) => {
      const use = useOfBody(head);
      return frame.kind === 'request' || use === 'refusal' ? use : 'nothing';
    },
    answersOnStream: false,
    readsOn: false,
    lingerMs: LINGER_MS,
    resume: undefined,
  };
}

export interface PostedMessage {
  readonly frame: Frame;
  readonly headers: readonly HeaderLine[];
  /** The client's headers that are forwarded with the message. */
  readonly forwarded: Lane['headers'];
  readonly cookies: SessionCookies;
}

/** [spec 2026-07-28 transports/streamable-http#sending-messages] a POST for each message, open to both kinds of answer. */
export function postRequest(
  environment: ServerEnvironment,
  { frame, headers, forwarded, cookies }: PostedMessage,
): HttpRequest {
  const { url, timeouts } = environment;
  const own = { 'Content-Type': JSON_TYPE, Accept: ACCEPT_ANSWER, ...Object.fromEntries(headers) };
  return {
    method: 'POST',
    url,
    headers: tracedHeaders(environment, own, frame),
    forwarded,
    body: frame.bytes,
    // A subscription has no time limit; it lasts as long as its client wants.
    timeouts: frame.method === LISTEN ? { ...timeouts, callMs: 0 } : timeouts,
    cookies,
    isRepeatable: onlyReads(frame),
  };
}

/** Returns the headers that every message needs. */
export function messageHeaders(frame: Frame): readonly HeaderLine[] {
  return standardHeaders(frame, readRevision(frame) ?? LATEST_MODERN_REVISION);
}

/** Reads the revision in the message's `_meta`, which the header has to repeat, whatever it is. */
function readRevision(frame: Frame): string | undefined {
  const { bytes } = frame;
  const meta = findUnmistakable(frame, frame.payloadStart, '_meta');
  if (meta === undefined || meta === 'unclear') return undefined;
  const revision = findUnmistakable(frame, meta.start, META_PROTOCOL_VERSION);
  if (revision === undefined || revision === 'unclear' || bytes[revision.start] !== QUOTE) return undefined;
  return decodeString(bytes, revision.start, revision.end);
}

/**
 * Rewrites a client's request with an id of the bridge. A progress token that can be read in two ways is left as it is:
 * each answer comes on its own stream, so progress notifications cannot reach another client.
 */
export function rewriteForPost(frame: Frame, id: number): RewrittenRequest {
  return rewriteRequest(frame, id) ?? { frame: withId(frame, id), progressToken: undefined };
}

/**
 * Returns the answer in a response other than 2xx, if it holds one. A JSON-RPC error without an id is about the posted
 * request if the status is 400 or 404, because the server checks headers before it reads the body.
 */
export function answerIn({ status, frame }: Refusal, request: Frame): Frame | undefined {
  const isNameless = frame?.id === undefined && (status === 400 || status === 404);
  return isNameless || answersId(frame?.id, request.id) ? frame : undefined;
}

/** Reason why a request has no answer. `isLost` is true if the server received the request and the answer was lost. */
export interface Failure {
  readonly error: BridgeError;
  readonly isLost: boolean;
}

/** Classifies the end of a request whose POST was not refused. */
export function failureOf(
  end: Extract<PostEnd, { kind: 'broken-off' | 'failed' }>,
  url: URL,
  method: string | undefined,
): Failure {
  const cause = end.kind === 'failed' ? end.error : end.cause;
  const wasSent = end.kind === 'broken-off' || end.wasSent;
  if (cause !== undefined && !(wasSent && isBreak(cause))) return { error: cause, isLost: false };
  return { error: lostAnswer(url, method, cause), isLost: true };
}

/**
 * Creates the error for a request that arrived and whose answer was lost. [spec 2026-07-28 transports/streamable-http]
 * Streams cannot be resumed.
 */
function lostAnswer(url: URL, method: string | undefined, cause: BridgeError | undefined): BridgeError {
  const detail = cause === undefined ? '' : ` ${cause.message}`;
  return new BridgeError(
    'ERR_UPSTREAM_DELIVERY',
    `The server at ${showUrl(url)} ended its response before the answer to ${method ?? 'a message'}. Whether the call was carried out is not known, so it is not sent again.${detail}`,
    { cause, data: { delivery: 'unknown' } },
  );
}
