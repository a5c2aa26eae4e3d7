import type { HttpRequest } from '../../http/client/http-call.ts';
import { JSON_TYPE } from '../../http/headers.ts';
import { type RewrittenRequest, rewriteRequest } from '../../mcp/classify/correlators.ts';
import { onlyReads } from '../../mcp/classify/repeatable.ts';
import { standardHeaders } from '../../mcp/classify/route-era.ts';
import type { HeaderLine } from '../../mcp/vocabulary/headers.ts';
import { META_PROTOCOL_VERSION } from '../../mcp/vocabulary/meta.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import { LATEST_MODERN_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import { type Frame, withId } from '../../wire/frame.ts';
import { QUOTE } from '../../wire/json/ascii.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import { tracedHeaders } from '../remote/remote-environment.ts';
import { ACCEPT_ANSWER } from '../remote/session-key.ts';
import type { StatelessEnvironment } from './call-host.ts';

export interface PostedMessage {
  readonly frame: Frame;
  readonly headers: readonly HeaderLine[];
  /** The client's headers that are forwarded with the message. */
  readonly forwarded: Lane['headers'];
}

/** [spec 2026-07-28 transports/streamable-http#sending-messages] a POST for each message, open to both kinds of answer. */
export function postRequest(
  environment: StatelessEnvironment,
  { frame, headers, forwarded }: PostedMessage,
): HttpRequest {
  const { url, cookies, timeouts } = environment;
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

/** Returns the headers that are forwarded with a request: its own, or those of the client that opened the link. */
export function forwardedWith({ forwarded }: StatelessEnvironment, exchange: Exchange | undefined): Lane['headers'] {
  return exchange === undefined ? forwarded : exchange.lane.headers;
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
