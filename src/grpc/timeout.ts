/** Milliseconds of each unit. [gRPC over HTTP2, TimeoutUnit] */
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
/** A Node timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Reads the header `grpc-timeout` in milliseconds. Undefined: the call has no deadline, or one that is weeks ahead.
 * `invalid`: the header has another form.
 */
export function parseTimeout(text: unknown): number | 'invalid' | undefined {
  if (text === undefined) return undefined;
  const [, amount = '', unit = ''] = (typeof text === 'string' && /^(\d{1,8})([HMSmun])$/.exec(text)) || [];
  const ms = Math.ceil(Number(amount) * (UNITS[unit] ?? Number.NaN));
  if (amount === '' || Number.isNaN(ms)) return 'invalid';
  return ms > MAX_TIMER_MS ? undefined : ms;
}
