/** One run as it is kept in a file: the figures, and where they come from. */
import { cpus, release, totalmem, type } from 'node:os';
import type { Arguments } from '../arguments.ts';
import { isInstalled, PEERS, type Peer, readVersion } from '../bridges/programs.ts';
import type { Figure, Gap, Metric, Records } from '../measure/records.ts';
import { median, medianRatio } from '../measure/statistics.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly os: string;
}

export interface LastRun {
  readonly date: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly figures: readonly Figure[];
  readonly gaps: readonly Gap[];
}

export function describeRun({ effort }: Arguments, records: Records, seconds: number): LastRun {
  const peers = (Object.keys(PEERS) as Peer[]).filter(isInstalled).map((peer) => [peer, readVersion(peer)]);
  return {
    date: new Date().toISOString().slice(0, 10),
    seconds: Math.round(seconds),
    rounds: effort.rounds,
    machine: describeMachine(),
    versions: { Node: process.version, 'mcp-portage': readVersion(''), ...Object.fromEntries(peers) },
    figures: records.figures,
    gaps: records.gaps,
  };
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    os: `${type()} ${release().split('-')[0]}`,
  };
}

/** Where a figure stands. */
export interface Spot {
  readonly case: string;
  readonly workload: string;
  readonly contender: string;
  readonly metric: Metric;
}

export function findValues(run: LastRun, spot: Spot): readonly number[] | undefined {
  return run.figures.find(
    (figure) =>
      figure.case === spot.case &&
      figure.workload === spot.workload &&
      figure.contender === spot.contender &&
      figure.metric === spot.metric,
  )?.values;
}

export function findMedian(run: LastRun, spot: Spot): number | undefined {
  const values = findValues(run, spot);
  return values === undefined ? undefined : median(values);
}

/** The first over the second, round by round. */
export function findRatio(run: LastRun, spot: Spot, against: Spot): number | undefined {
  const values = findValues(run, spot);
  const others = findValues(run, against);
  return values === undefined || others === undefined ? undefined : medianRatio(values, others);
}
