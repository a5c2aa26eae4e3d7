import { CLIENTS, type ClientName } from '../matrix/clients.ts';
import type { Front } from '../matrix/fronts.ts';
import { startTestBed } from './test-bed.ts';

/** As many processes for modern clients as a scenario needs at once, as with one bridge. */
const POOL = ['--pool-size', '8'];

/** Nobody leaves here, and a busy machine must not look like one. */
const LEASE_MS = 30_000;

/** Three replicas behind a balancer that takes turns, in place of the one bridge. */
export async function startClusterFront(client: ClientName, target: readonly string[]): Promise<Front> {
  const kind = CLIENTS[client];
  const args = target[0] === '--' ? [...POOL, ...target] : target;
  const bed = await startTestBed({ args, leaseMs: LEASE_MS });
  const endpoint = { kind: 'url', url: kind.over === 'httpSse' ? bed.sseUrl : bed.url } as const;
  const bridges = bed.places.map(({ bridge }) => bridge);
  return {
    get logs() {
      return bridges.flatMap(({ logs }) => logs);
    },
    connect: (options) => kind.connect(endpoint, options),
    processes: () => bridges.flatMap(({ pid, children }) => [pid, ...children()]),
    stop: () => bed.stop(),
  };
}
