/** Ends of a call that the bridge itself makes, the same for every relay. */
import { BridgeError } from '../errors.ts';
import { META_SUBSCRIPTION_ID } from '../mcp/meta.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { resultFrame } from '../wire/write-message.ts';

/** Nothing was heard of the call for as long as a call may be silent. */
export function silenceError(method: string, timeoutMs: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server did not answer ${method} within ${timeoutMs} ms and reported no progress; raise --request-timeout if it needs longer.`,
    { data: { phase: 'response', timeoutMs } },
  );
}

/** [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure] */
export function endOfSubscription(id: JsonRpcId): Frame {
  return resultFrame(id, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } });
}
