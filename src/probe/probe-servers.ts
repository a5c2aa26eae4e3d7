import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { escapeHidden } from '../printable.ts';
import type { ProbedAggregate, Waiting } from './findings.ts';
import { renderProbes } from './render-probes.ts';
import { renderReport } from './render-report.ts';
import { exitCodeOf } from './report.ts';
import { runProbe } from './run-probe.ts';
import { describeAll, exitCodeOfAll, runProbes } from './run-probes.ts';

export interface ProbeRequest {
  readonly config: Pick<Config, 'servers'>;
  /** The time limit for each server, in the order of the servers. */
  readonly timeoutsMs: readonly number[];
  readonly format: 'human' | 'json';
  /** The width of the terminal that the report is written to. */
  readonly width: number;
  readonly color: boolean;
  /** Aborted when the user interrupts the probe, which then reports what it has found. */
  readonly signal: AbortSignal;
  readonly waiting: Waiting;
  /** Given if the server is the aggregate. */
  readonly aggregate?: ProbedAggregate | undefined;
}

export interface ProbeResult {
  /** The text for stdout, in the requested format. */
  readonly report: string;
  readonly exitCode: number;
}

/** Probes the server of the command line, or all servers of a file at the same time. */
export async function probeServers(request: ProbeRequest, deps: Deps): Promise<ProbeResult> {
  const { config, timeoutsMs, format, signal, waiting, aggregate, ...look } = request;
  const [server] = config.servers;
  const [timeoutMs = 0] = timeoutsMs;
  if (server.listing === undefined) {
    const report = await runProbe(server.target, { ...server, timeoutMs, signal, waiting, aggregate }, deps);
    return {
      report: format === 'json' ? renderJson(report) : renderReport(report, look),
      exitCode: exitCodeOf(report),
    };
  }
  const probes = config.servers.map(({ listing, target, ...about }, index) => {
    const ownTimeoutMs = timeoutsMs[index] ?? timeoutMs;
    return { name: listing?.name ?? '', target, config: { ...about, timeoutMs: ownTimeoutMs, signal } };
  });
  const outcomes = await runProbes(probes, waiting, deps);
  return {
    report: format === 'json' ? renderJson(describeAll(outcomes)) : renderProbes(outcomes, look),
    exitCode: exitCodeOfAll(outcomes),
  };
}

function renderJson(report: object): string {
  return `${escapeHidden(JSON.stringify(report, undefined, 2))}\n`;
}
