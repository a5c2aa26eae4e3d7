import type { ExecutionContext } from 'ava';
import type { LogLine } from './bridge.ts';
import { waitFor } from './wait-for.ts';

/**
 * Fails unless this is all there is in the log at `warn` or above since the bridge started. The log comes through a pipe
 * of its own, so what is missing is waited for.
 * @param expected in any order; `level code`, or `level message` where there is no code
 */
export async function says(
  t: ExecutionContext,
  { logs }: { readonly logs: readonly LogLine[] },
  expected: readonly string[],
): Promise<void> {
  await waitFor(() => seriousOf(logs).length >= expected.length).catch(() => undefined);
  t.deepEqual(seriousOf(logs), [...expected].sort(), 'what the log says');
}

/** Without the lines about lost lines: how many these tests read in time is their own affair. */
function seriousOf(logs: readonly LogLine[]): readonly string[] {
  const serious = logs.filter(
    ({ level, dropped }) => /^(warn|error|fatal)$/.test(String(level)) && dropped === undefined,
  );
  return serious.map(({ level, code, msg }) => `${level} ${code ?? msg}`).sort();
}
