/** Longer delays are cut, because no caller waits for so long. */
const MAX_RETRY_AFTER_S = 24 * 60 * 60;

/** Parses seconds or a date to milliseconds; undefined if the value is neither. [RFC 9110 10.2.3] */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), MAX_RETRY_AFTER_S) * 1000;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
