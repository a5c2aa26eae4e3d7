/** What the server has said of a stream that is lost: the event to go on after, and the pause before that. */

/** [spec WHATWG HTML server-sent events] an id travels back as UTF-8; Node takes header values as Latin-1. */
export function encodeEventId(id: string): string | undefined {
  const value = Buffer.from(id, 'utf8').toString('latin1');
  return /^[\t\x20-\x7e\x80-\xff]+$/.test(value) ? value : undefined;
}

/** A server that says 0 is still not asked without a pause, or it would be asked as fast as it answers, for ever. */
export const MIN_RETRY_MS = 50;
/** The longest delay a timer can take; beyond it one would fire at once. */
export const MAX_RETRY_MS = 2 ** 31 - 1;

/** The pause before a server is asked again, of whatever it wants. */
export function toRetryPause(wantedMs: number): number {
  return Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, wantedMs));
}
