/** Decides which failures of a login are temporary, and retries after them. */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { sleep } from '../../io/sleep.ts';

/**
 * The time that a user has to log in. It is shorter than the silence that calls are allowed, so that waiting calls
 * still get an answer with the reason.
 */
export const LOGIN_TIMEOUT_MS = 4 * 60_000;
/** Shorter than the minute after which many clients give up, so that their users learn what the login waits for. */
export const PATIENCE_MS = 45_000;
/** The first pause between two attempts. Each pause is twice as long as the one before, up to MAX_PAUSE_MS. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 10_000;

/** System error codes for a network or a server that may be reachable again in a moment. */
const PASSING_CAUSES: ReadonlySet<unknown> = new Set([
  ...['ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN'],
]);

/** True if the same request may succeed in a moment. An error of a login is temporary if it says when to try again. */
export function mayPass({ code, data, retryAfterMs }: BridgeError): boolean {
  if (code === 'ERR_UPSTREAM_CONNECT') return PASSING_CAUSES.has(data?.cause);
  return code === 'ERR_UPSTREAM_TIMEOUT' || (code === 'ERR_UPSTREAM_AUTH' && retryAfterMs !== undefined);
}

/**
 * Returns for how long calls fail with this error before another attempt. A failure to reach a server needs no pause,
 * and a server may name its own, which counts up to `usualMs`.
 * @param usualMs the pause after a decision of a user or a server
 */
export function pauseAfter({ code, retryAfterMs }: BridgeError, usualMs: number): number {
  if (retryAfterMs !== undefined) return Math.min(retryAfterMs, usualMs);
  return code === 'ERR_UPSTREAM_CONNECT' || code === 'ERR_UPSTREAM_TIMEOUT' ? 0 : usualMs;
}

export interface PatienceContext {
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the error to reject with. */
  readonly signal: AbortSignal;
}

/** Retries temporary failures, with pauses, for as long as callers can be expected to wait. */
export async function patiently<Result>(
  attempt: () => Promise<Result>,
  { clock, log, signal }: PatienceContext,
): Promise<Result> {
  const endMs = clock.now() + PATIENCE_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await attempt();
    } catch (thrown) {
      if (!(thrown instanceof BridgeError) || !mayPass(thrown)) throw thrown;
      const delayMs = Math.max(pauseMs, thrown.retryAfterMs ?? 0);
      if (clock.now() + delayMs > endMs) throw thrown;
      log.warn({ code: thrown.code }, `${thrown.message} The login is tried again in ${Math.ceil(delayMs / 1000)} s.`);
      await sleep(clock, delayMs, signal);
    }
  }
}
