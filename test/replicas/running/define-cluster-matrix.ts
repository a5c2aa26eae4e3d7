import type { TestFn } from 'ava';
import { Cell } from '../../matrix/cell.ts';
import type { ClientName } from '../../matrix/clients.ts';
import { testCell } from '../../matrix/define-matrix.ts';
import { CONVERSATION } from '../../matrix/scenarios.ts';
import { OTHER_CARRIERS, SERVER_NAMES, SERVERS, type ServerName } from '../../matrix/servers.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { ClusterFront } from './front.ts';

/** Of MCP's own transports: replicas reach servers at other carriers as a single bridge does. */
export const REPLICATED = SERVER_NAMES.filter((name) => !OTHER_CARRIERS.includes(SERVERS[name].over));

/** Half of them: what takes a client long is split into two files, which run side by side. */
export const LEGACY_STREAMABLE = REPLICATED.filter(
  (name) => SERVERS[name].over === 'streamable' && SERVERS[name].era === 'legacy',
);

/** Registers every scenario of the matrix for this client with these servers, all behind the same three replicas. */
export function testClusterMatrixOf(
  test: TestFn,
  client: ClientName,
  servers: readonly ServerName[] = REPLICATED,
): void {
  if (WHY_NO_CLUSTER !== undefined) {
    test.skip(`${client} through a balancer (${WHY_NO_CLUSTER})`, (t) => t.fail());
    return;
  }
  const front = new ClusterFront(servers);
  for (const server of servers) testCell(test, new Cell(client, server, front.start), CONVERSATION);
}
