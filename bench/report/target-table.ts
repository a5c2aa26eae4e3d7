import { TARGETS, type Target } from '../targets.ts';
import { findMedian, findRatio, type LastRun } from './last-run.ts';
import { formatNumber } from './tables.ts';

export type Verdict = 'met' | 'missed' | 'not measured';

export interface Judged {
  readonly target: Target;
  readonly verdict: Verdict;
  readonly got: string;
  /** What the floor gets in the place of mcp-portage, where the target is about a peer. */
  readonly floorGot: string;
  /** The floor would miss it as well. */
  readonly isBelowFloor: boolean;
}

export function judge(run: LastRun, target: Target): Judged {
  const { spot, against, limit, floor } = target;
  const value = measure(run, target);
  const onFloor = floor === undefined ? undefined : measure(run, { ...target, spot: { ...spot, contender: floor } });
  const beside = {
    floorGot: formatRatio(onFloor),
    isBelowFloor: onFloor !== undefined && 'timesLess' in limit && onFloor < limit.timesLess,
  };
  if (value === undefined || Number.isNaN(value)) return { target, verdict: 'not measured', got: '', ...beside };
  const isMet = 'atMost' in limit ? value <= limit.atMost : value >= limit.timesLess;
  const got = against === undefined ? formatNumber(value) : formatRatio(value);
  return { target, verdict: isMet ? 'met' : 'missed', got, ...beside };
}

function measure(run: LastRun, { spot, against, limit }: Target): number | undefined {
  if (against === undefined) return findMedian(run, spot);
  const other = { ...spot, contender: against };
  return 'atMost' in limit ? findRatio(run, spot, other) : findRatio(run, other, spot);
}

function formatRatio(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '' : `${formatNumber(value)}×`;
}

export interface TargetCounts {
  readonly met: number;
  readonly missed: number;
  readonly unmeasured: number;
  /** Of those missed, the ones that ask for less than the floor itself needs. */
  readonly belowFloor: number;
}

export function countTargets(run: LastRun): TargetCounts {
  const judged = TARGETS.map((target) => judge(run, target));
  const count = (verdict: Verdict): number => judged.filter((one) => one.verdict === verdict).length;
  return {
    met: count('met'),
    missed: count('missed'),
    unmeasured: count('not measured'),
    belowFloor: judged.filter(({ verdict, isBelowFloor }) => verdict === 'missed' && isBelowFloor).length,
  };
}

export function renderTargets(run: LastRun): string {
  const rows = TARGETS.map((target) => judge(run, target)).map(({ target, verdict, got, floorGot }) => {
    const { title, against, limit } = target;
    const wanted = 'atMost' in limit ? `at most ${limit.atMost}` : `at least ${limit.timesLess}× less`;
    const unit = against !== undefined && 'atMost' in limit ? '×' : '';
    return `| ${title} | ${against ?? ''} | ${wanted}${unit} | ${got} | ${floorGot} | ${verdict} |`;
  });
  const { met, missed, unmeasured, belowFloor } = countTargets(run);
  return [
    '| what | against | target | got | the floor got | |',
    '|---|---|---|--:|--:|---|',
    ...rows,
    '',
    `${met} met, ${missed} missed, ${unmeasured} not measured. Of those missed, ${belowFloor} ask for less than the floor`,
    'itself needs.',
  ].join('\n');
}
