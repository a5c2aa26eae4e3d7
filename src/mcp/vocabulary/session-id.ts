/** [spec 2025-11-25 transports#session-management] visible ASCII; anything else could not be sent back. */
export function isSessionId(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value);
}
