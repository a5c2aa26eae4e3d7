/**
 * Hosts run in namespaces of Linux that have the loopback interface and nothing else, so they cannot reach a registry, a
 * model or a collector of telemetry, whatever they try; and no process of theirs outlives the run.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';

/** The program and first arguments of a command that runs what follows in there. */
export const ISOLATED: readonly [string, ...string[]] = [
  'unshare',
  ...['--map-root-user', '--net', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'],
  ...['sh', '-c', 'ip link set lo up && exec "$@"', 'sh'],
];

/** Why that cannot be had; undefined where it can. */
export function whyNotIsolated(): string | undefined {
  if (process.platform !== 'linux')
    return 'hosts are kept off the network by namespaces of Linux, and this is not Linux';
  const [program, ...args] = ISOLATED;
  const tried: SpawnSyncReturns<string> = spawnSync(program, [...args, 'true'], { encoding: 'utf8' });
  if (tried.status === 0) return undefined;
  const words = tried.error?.message ?? tried.stderr.trim().split('\n')[0];
  return `hosts are kept off the network by unshare and ip, which do not work here: ${words}`;
}
