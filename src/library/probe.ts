import { createSystemDeps } from '../cli/system-deps.ts';
import type { ProbeReport } from '../probe/report.ts';
import { runProbe } from '../probe/run-probe.ts';
import { createGivenLog } from './given-log.ts';
import type { ProbeOptions, ServerEntry } from './public-types.ts';
import { readOptions } from './read-options.ts';

/** See src/library.ts. */
export async function probe(server: ServerEntry, given: ProbeOptions = {}): Promise<ProbeReport> {
  const { log: givenLog, signal, timeout, ...options } = given;
  const { config, probe: timing, warnings } = await readOptions('probe', { ...options, server }, timeout);
  const log = createGivenLog(givenLog);
  for (const warning of warnings) log.warn(warning);
  const [{ target, ...about }] = config.servers;
  const [timeoutMs = 0] = timing.timeoutsMs;
  const asked = { ...about, timeoutMs, signal: signal ?? new AbortController().signal, waiting: () => undefined };
  return runProbe(target, asked, createSystemDeps(log));
}
