import type { RemoteConfig } from '../../src/config/remote.ts';
import type { Protocol, ServerConfig } from '../../src/config/server.ts';
import type { Clock } from '../../src/deps.ts';
import type { ProbedAggregate, Waiting } from '../../src/probe/findings.ts';
import { exitCodeOf, type Offer, type ProbeReport } from '../../src/probe/report.ts';
import { runProbe } from '../../src/probe/run-probe.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { REMOTE } from '../support/remote-config.ts';

export interface ProbeRun {
  readonly protocol?: Protocol;
  readonly remote?: Partial<RemoteConfig>;
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly waiting?: Waiting;
  readonly aggregate?: ProbedAggregate;
}

const LIMITS = {
  maxChildren: 100,
  maxLineBytes: undefined,
  maxMessageBytes: 1024 * 1024,
  maxJsonDepth: 1000,
  maxHeaderBytes: 16 * 1024,
  maxInFlight: 100,
  maxSessionInFlight: 100,
  maxSessionStreams: 100,
  maxReplayBytes: 1024 * 1024,
  maxResultBytes: 0,
  maxParkedCalls: 8,
  maxParkedBytes: 1024 * 1024,
  requestTimeoutMs: 0,
  maxCallTimeMs: 0,
  hangTimeoutMs: 0,
  shutdownGraceMs: 30_000,
};

/** Probes with everything at its default. */
export function probe(
  target: URL | ServerConfig['target'],
  { protocol = 'auto', remote = {}, timeoutMs = 30_000, clock, waiting = () => undefined, aggregate }: ProbeRun = {},
): Promise<ProbeReport> {
  const { deps } = createTestDeps();
  return runProbe(
    target instanceof URL ? { kind: 'url', url: target, socketPath: undefined } : target,
    {
      protocol,
      remote: { ...REMOTE, ...remote },
      child: { cwd: undefined, env: { PATH: process.env.PATH ?? '' }, withheldEnv: [], pty: false },
      limits: LIMITS,
      replaySpeed: 0,
      timeoutMs,
      waiting,
      aggregate,
    },
    clock === undefined ? deps : { ...deps, clock },
  );
}

/** `streamable-http legacy`, for each offer that works. */
export function working({ offers }: ProbeReport): readonly string[] {
  return offers.filter((offer) => offer.works).map(({ transport, era }) => `${transport} ${era}`);
}

export function offerOf({ offers }: ProbeReport, name: string): Offer {
  const found = offers.find(({ transport, era }) => `${transport} ${era}` === name);
  if (found === undefined) throw new Error(`${name} was not tried`);
  return found;
}

/** Verdict and exit code in one. */
export function conclusionOf(report: ProbeReport): string {
  return `${report.verdict} (${exitCodeOf(report)})`;
}

/** What each kind of client is told. */
export function adviceIn({ clients }: ProbeReport): Readonly<Record<string, string>> {
  return Object.fromEntries(clients.map(({ client, way, command }) => [client, command ?? way]));
}
