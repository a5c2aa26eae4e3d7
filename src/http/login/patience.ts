/** How long a login may wait, and for what. */
import type { Clock } from '../../deps.ts';

/**
 * This is less than the silence that calls are allowed, so that the calls that wait still get an answer that says why.
 */
export const LOGIN_TIMEOUT_MS = 4 * 60_000;

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
