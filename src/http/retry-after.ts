/** A server that asks for more is not waited for by anybody. */
const MAX_RETRY_AFTER_S = 24 * 60 * 60;

/** [RFC 9110 10.2.3] seconds, or a date; undefined: neither. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), MAX_RETRY_AFTER_S) * 1000;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
