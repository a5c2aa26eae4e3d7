import type { ExecutionContext } from 'ava';
import type { LogLine } from './bridge.ts';

/**
 * Fails unless this is all there is in the log at `warn` or above: all of it has to be there, so the bridge has ended.
 * @param expected in any order; `level code`, or `level message` where there is no code
 */
export function says(
  t: ExecutionContext,
  { logs }: { readonly logs: readonly LogLine[] },
  expected: readonly string[],
): void {
  t.deepEqual(seriousOf(logs), [...expected].sort(), 'what the log says');
}

/**
 * Without the lines about lost lines, and about how many requests were refused in a minute: how many these tests read in
 * time, and refuse, is their own affair.
 */
function seriousOf(logs: readonly LogLine[]): readonly string[] {
  const serious = logs.filter(
    ({ level, dropped, refused }) =>
      /^(warn|error|fatal)$/.test(String(level)) && dropped === undefined && refused === undefined,
  );
  return serious.map(({ level, code, msg }) => `${level} ${code ?? msg}`).sort();
}
