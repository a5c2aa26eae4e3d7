/** Decides which failures of a login pass by themselves, and waits for that. */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';

/**
 * This is less than the silence that calls are allowed, so that the calls that wait still get an answer that says why.
 */
export const LOGIN_TIMEOUT_MS = 4 * 60_000;
/** Less than the minute after which many clients give up, so that they learn what the login waits for. */
export const PATIENCE_MS = 45_000;
/** The first pause; each one is twice as long as the one before, up to the limit. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 10_000;

/** The codes of the system for a network or a server that may be there again in a moment. */
const PASSING_CAUSES: ReadonlySet<unknown> = new Set([
  ...['ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN'],
]);

/** Returns true if the same may succeed in a moment. An error of a login says so by the time after which to try again. */
export function mayPass({ code, data, retryAfterMs }: BridgeError): boolean {
  if (code === 'ERR_UPSTREAM_CONNECT') return PASSING_CAUSES.has(data?.cause);
  return code === 'ERR_UPSTREAM_TIMEOUT' || (code === 'ERR_UPSTREAM_AUTH' && retryAfterMs !== undefined);
}

/**
 * How long calls fail with this error before something is tried again. A failure to reach a server needs no pause, and
 * the server itself may name one.
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

/** Repeats what fails for a reason that may pass, with pauses, for as long as callers can be expected to wait. */
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

/** Resolves after this time. Rejects with the reason of the signal. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
