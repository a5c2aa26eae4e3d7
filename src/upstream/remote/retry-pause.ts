/** A server that says 0 is still not asked without a pause, or it would be asked as fast as it answers, for ever. */
export const MIN_RETRY_MS = 50;
/** The longest delay a timer can take; beyond it one would fire at once. */
export const MAX_RETRY_MS = 2 ** 31 - 1;

/** The pause before a server is asked again, of whatever it wants. */
export function toRetryPause(wantedMs: number): number {
  return Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, wantedMs));
}
