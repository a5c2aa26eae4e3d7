/** Ends of a call that the bridge itself makes, the same for every relay. */
import { BridgeError } from '../errors.ts';
import { META_SUBSCRIPTION_ID } from '../mcp/vocabulary/meta.ts';
import { LISTEN } from '../mcp/vocabulary/methods.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { resultFrame } from '../wire/write-message.ts';
import type { Exchange } from './exchange.ts';

/** What time a call may take. Looked at now and then: no call has a timer of its own. */
export interface CallTimes {
  /** Silence; 0: no limit. */
  readonly requestTimeoutMs: number;
  /** From the request to its answer, whatever is heard meanwhile; 0 or absent: no limit. */
  readonly maxCallMs?: number | undefined;
}

/**
 * Why a call has to end now; undefined: it may go on. While its client is being asked it may be silent, but not for ever.
 * A subscription may be: it is silent for as long as nothing changes.
 * [spec 2025-11-25 basic/lifecycle#timeouts] a maximum is enforced whatever progress is reported.
 */
export function overdue(exchange: Exchange, nowMs: number, times: CallTimes): BridgeError | undefined {
  const { requestTimeoutMs, maxCallMs = 0 } = times;
  const { method, openedAtMs, lastActiveMs, openQuestions } = exchange;
  if (method === LISTEN) return undefined;
  if (maxCallMs > 0 && nowMs - openedAtMs >= maxCallMs) return lengthError(method, maxCallMs);
  const isSilent = requestTimeoutMs > 0 && openQuestions === 0 && nowMs - lastActiveMs >= requestTimeoutMs;
  return isSilent ? silenceError(method, requestTimeoutMs) : undefined;
}

/** How often calls have to be looked at so that none is much too late; undefined: never. */
export function shortestOf({ requestTimeoutMs, maxCallMs = 0 }: CallTimes): number | undefined {
  const limits = [requestTimeoutMs, maxCallMs].filter((limitMs) => limitMs > 0);
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function silenceError(method: string, timeoutMs: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server did not answer ${method} within ${timeoutMs} ms and reported no progress; raise --request-timeout if it needs longer.`,
    { data: { phase: 'response', timeoutMs } },
  );
}

function lengthError(method: string, timeoutMs: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server did not finish ${method} within ${timeoutMs} ms, the most a call may take whatever progress it reports; raise --max-call-time if it needs longer, 0 is no limit.`,
    { data: { phase: 'call', timeoutMs } },
  );
}

/** [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure] */
export function endOfSubscription(id: JsonRpcId): Frame {
  return resultFrame(id, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } });
}
