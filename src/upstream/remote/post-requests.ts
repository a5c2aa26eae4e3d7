import type { CallTimeouts } from '../../http/client/call-limits.ts';
import type { HttpRequest } from '../../http/client/http-call.ts';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import { LAST_EVENT_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import { INITIALIZE, PING } from '../../mcp/vocabulary/methods.ts';
import type { Outgoing } from './link-messages.ts';
import type { ResumedStream } from './posted-call.ts';
import { type RemoteEnvironment, tracedHeaders } from './remote-environment.ts';

/**
 * Time limit for a request of the bridge's own. A client's call waits for it, and no client notices that it is not
 * answered. The limit is as long as official clients wait for an answer.
 */
const OWN_CALL_MS = 60_000;

/** Creates the POST of a message in a session. */
export function postRequest(
  environment: RemoteEnvironment,
  { frame, call, reply }: Outgoing,
  headers: Readonly<Record<string, string>>,
): HttpRequest {
  const { url, cookies, caller, timeouts } = environment;
  return {
    method: 'POST',
    url,
    headers: tracedHeaders(environment, headers, frame),
    forwarded: caller.of(frame, call),
    body: frame.bytes,
    timeouts: timeoutsFor(reply, timeouts),
    cookies,
    isRepeatable: frame.method === INITIALIZE || frame.method === PING,
  };
}

/**
 * Creates the request that resumes a stream. [spec 2025-11-25 transports#resumability-and-redelivery] This is always a
 * GET, also for a stream that a POST opened.
 */
export function resumeRequest(
  { url, cookies, caller, timeouts }: RemoteEnvironment,
  { message: { reply, session }, lastEventId, elapsedMs }: ResumedStream,
): HttpRequest {
  const limits = timeoutsFor(reply, timeouts);
  const callMs = limits.callMs === 0 ? 0 : Math.max(1, limits.callMs - elapsedMs);
  return {
    method: 'GET',
    url,
    headers: { Accept: EVENT_STREAM_TYPE, ...session.headers, [LAST_EVENT_ID_HEADER_OUT]: lastEventId },
    forwarded: caller.latest,
    body: undefined,
    timeouts: { ...limits, callMs },
    cookies,
    isRepeatable: true,
  };
}

function timeoutsFor(reply: Outgoing['reply'], timeouts: CallTimeouts): CallTimeouts {
  const { callMs } = timeouts;
  const areFit = reply === undefined || (callMs > 0 && callMs <= OWN_CALL_MS);
  return areFit ? timeouts : { ...timeouts, callMs: OWN_CALL_MS };
}
