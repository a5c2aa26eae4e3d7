/** The messages that keep a bridge busy for longest, as a table. */
import { findValues, type LastRun } from './last-run.ts';
import { formatNumber } from './tables.ts';

export function renderStalls(run: LastRun): string {
  const rows = run.figures
    .filter(({ case: name, metric }) => name === 'stalls' && metric === 'blockMs')
    .map(({ workload, contender, values }) => {
      const spot = { case: 'stalls', workload, contender, metric: 'blockFloors' } as const;
      // The least of the rounds: the others have the machine's noise in them, and nothing of the message.
      return { workload, ms: Math.min(...values), floors: Math.min(...(findValues(run, spot) ?? [Number.NaN])) };
    })
    .sort((a, b) => b.ms - a.ms);
  if (rows.length === 0) return 'Not measured.';
  return [
    '| bridge | message: filled with | ms | ÷ floor |',
    '|---|---|--:|--:|',
    ...rows.map(({ workload, ms, floors }) => `| ${workload} | ${formatNumber(ms)} | ${formatNumber(floors)}× |`),
  ].join('\n');
}
