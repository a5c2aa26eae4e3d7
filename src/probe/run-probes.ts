import type { ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { type BridgeError, toBridgeError } from '../errors.ts';
import type { ProbeConfig } from './findings.ts';
import { exitCodeOf, type ProbeReport } from './report.ts';
import { runProbe } from './run-probe.ts';

/** Limit of concurrent probes. Each may start processes, but mostly waits for its server. */
const AT_A_TIME = 4;

export interface NamedProbe {
  readonly name: string;
  readonly target: ServerConfig['target'];
  readonly config: Omit<ProbeConfig, 'waiting'>;
}

/** The outcome for a single server of several: its report, or the error that kept it from being probed. */
export type NamedOutcome =
  | { readonly name: string; readonly kind: 'report'; readonly report: ProbeReport }
  | { readonly name: string; readonly kind: 'error'; readonly error: BridgeError };

/**
 * Probes several servers at the same time, independently of each other. Resolves with an outcome for each, in the given
 * order.
 *
 * @param waiting receives what is waited for next
 */
export async function runProbes(
  probes: readonly NamedProbe[],
  waiting: (what: string) => void,
  deps: Deps,
): Promise<readonly NamedOutcome[]> {
  const outcomes = new Map<NamedProbe, NamedOutcome>();
  const running = new Set<string>();
  const tell = (): void => {
    const names = [...running].join(', ');
    waiting(`${names} (${outcomes.size} of ${probes.length} are done)`);
  };
  const left = [...probes];
  const runSome = async (): Promise<void> => {
    for (let probe = left.shift(); probe !== undefined; probe = left.shift()) {
      running.add(probe.name);
      tell();
      outcomes.set(probe, await ask(probe, deps));
      running.delete(probe.name);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, runSome));
  return probes.flatMap((probe) => outcomes.get(probe) ?? []);
}

async function ask({ name, target, config }: NamedProbe, deps: Deps): Promise<NamedOutcome> {
  try {
    const report = await runProbe(target, { ...config, waiting: () => undefined }, deps);
    return { name, kind: 'report', report };
  } catch (thrown) {
    return { name, kind: 'error', error: toBridgeError(thrown) };
  }
}

/** Exit codes by severity, the worst last. */
const BY_SEVERITY: readonly number[] = [0, 77, 69, 2, 70];

/** The exit code of the server with the worst outcome. */
export function exitCodeOfAll(outcomes: readonly NamedOutcome[]): number {
  const codes = outcomes.map((outcome) =>
    outcome.kind === 'report' ? exitCodeOf(outcome.report) : (outcome.error.audiences.exit ?? 70),
  );
  return codes.reduce((worst, code) => (BY_SEVERITY.indexOf(code) > BY_SEVERITY.indexOf(worst) ? code : worst), 0);
}

/** The outcomes for programs: for each server its report, as it is printed for a single server. */
export function describeAll(outcomes: readonly NamedOutcome[]): object {
  const servers = outcomes.map((outcome) => {
    const { name } = outcome;
    if (outcome.kind === 'report') return { name, report: outcome.report };
    return { name, error: { code: outcome.error.code, message: outcome.error.message } };
  });
  return { format: 1, servers };
}
