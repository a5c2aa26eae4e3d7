import { readdirSync, readFileSync } from 'node:fs';
import { descendantsOf } from '../support/processes.ts';

/** One look at a running bridge. */
export interface Sample {
  readonly atMs: number;
  readonly rssMiB: number;
  /** Sockets, pipes and files. */
  readonly handles: number;
  readonly children: number;
}

export function takeSample(pid: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
  return {
    atMs: Date.now(),
    rssMiB: kib / 1024,
    handles: readdirSync(`/proc/${pid}/fd`).length,
    children: descendantsOf(pid).length,
  };
}

/** Several bridges taken together. */
export function sumOf(samples: readonly Sample[]): Sample {
  const sum = (key: keyof Sample): number => samples.reduce((total, one) => total + one[key], 0);
  return { atMs: Date.now(), rssMiB: sum('rssMiB'), handles: sum('handles'), children: sum('children') };
}

/** Flat: the last quarter of the time needs no more than the second one (the first warms up) and this on top. */
const GROWTH = { share: 0.15, rssMiB: 24, handles: 40, children: 8 };

export interface Verdict {
  readonly report: string;
  readonly isFlat: boolean;
}

/** Compares medians: a single look may meet a garbage collection, or a burst of visitors. */
export function judgeFlat(samples: readonly Sample[]): Verdict {
  const quarter = Math.floor(samples.length / 4);
  const early = samples.slice(quarter, 2 * quarter);
  const late = samples.slice(-quarter);
  const lines: string[] = [];
  let isFlat = quarter > 0;
  for (const key of ['rssMiB', 'handles', 'children'] as const) {
    const [before, after] = [median(early.map((one) => one[key])), median(late.map((one) => one[key]))];
    const limit = before * (1 + GROWTH.share) + GROWTH[key];
    isFlat &&= after <= limit;
    const peak = Math.max(...samples.map((one) => one[key]));
    lines.push(`${key} ${round(before)} → ${round(after)} (limit ${round(limit)}, peak ${round(peak)})`);
  }
  return { report: lines.join('; '), isFlat };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const round = (value: number): string => value.toFixed(value < 10 ? 1 : 0);
