import { TARGETS, type Target } from '../targets.ts';
import { findMedian, findRatio, type LastRun } from './last-run.ts';
import { formatNumber } from './tables.ts';

export type Verdict = 'met' | 'missed' | 'not measured';

export interface Judged {
  readonly target: Target;
  readonly verdict: Verdict;
  readonly got: string;
}

export function judge(run: LastRun, target: Target): Judged {
  const { spot, against, limit } = target;
  const value =
    against === undefined
      ? findMedian(run, spot)
      : 'atMost' in limit
        ? findRatio(run, spot, { ...spot, contender: against })
        : findRatio(run, { ...spot, contender: against }, spot);
  if (value === undefined || Number.isNaN(value)) return { target, verdict: 'not measured', got: '' };
  const isMet = 'atMost' in limit ? value <= limit.atMost : value >= limit.timesLess;
  return { target, verdict: isMet ? 'met' : 'missed', got: formatNumber(value) + (against === undefined ? '' : '×') };
}

export function renderTargets(run: LastRun): string {
  const rows = TARGETS.map((target) => judge(run, target)).map(({ target, verdict, got }) => {
    const { title, against, limit } = target;
    const wanted = 'atMost' in limit ? `at most ${limit.atMost}` : `at least ${limit.timesLess}× less`;
    const unit = against !== undefined && 'atMost' in limit ? '×' : '';
    return `| ${title} | ${against ?? ''} | ${wanted}${unit} | ${got} | ${verdict} |`;
  });
  const counts = TARGETS.map((target) => judge(run, target).verdict);
  const count = (verdict: Verdict): number => counts.filter((one) => one === verdict).length;
  return [
    '| what | against | target | got | |',
    '|---|---|---|--:|---|',
    ...rows,
    '',
    `${count('met')} met, ${count('missed')} missed, ${count('not measured')} not measured.`,
  ].join('\n');
}
