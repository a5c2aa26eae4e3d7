/** How the cost of a call grows: with the size of its result, and with the sessions that share a child. */
import { type Contender, STREAMABLE } from '../cases.ts';
import { MANY_SESSIONS } from '../extras.ts';
import { findMedian, type LastRun } from './last-run.ts';
import { formatNumber } from './tables.ts';

const SIZES: readonly (readonly [title: string, workload: string])[] = [
  ['a few bytes', 'small-32'],
  ['1 KiB', 'result-1KiB'],
  ['10 KiB', 'result-10KiB'],
  ['100 KiB', 'result-100KiB'],
  ['1 MiB', 'result-1MiB'],
  ['10 MiB', 'result-10MiB'],
];

export function renderGrowth(run: LastRun): string {
  const sessions = MANY_SESSIONS.counts.map((count) => [`${count}`, `sessions-${count}`] as const);
  return [
    'CPU µs of a call, by the size of its result (Streamable HTTP):',
    renderSeries(run, { case: STREAMABLE.name, places: SIZES, names: STREAMABLE.entrants.map(({ name }) => name) }),
    'CPU µs of a small call, by the number of sessions on one child:',
    renderSeries(run, { case: 'memory', places: sessions, names: MANY_SESSIONS.entrants.map(({ name }) => name) }),
  ].join('\n\n');
}

interface Series {
  readonly case: string;
  readonly places: readonly (readonly [title: string, workload: string])[];
  readonly names: readonly Contender[];
}

function renderSeries(run: LastRun, { case: name, places, names }: Series): string {
  const rows = names
    .map((contender) => [
      contender,
      ...places.map(([, workload]) => {
        const value = findMedian(run, { case: name, workload, contender, metric: 'cpu' });
        return value === undefined ? '' : formatNumber(value);
      }),
    ])
    .filter(([, ...cells]) => cells.some((cell) => cell !== ''));
  const head = ['', ...places.map(([title]) => title)];
  const line = head.map((_, column) => (column === 0 ? '---' : '--:'));
  return [head, line, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
