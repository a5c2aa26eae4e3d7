import type { TestFn } from 'ava';
import { Cell } from '../matrix/cell.ts';
import type { ClientName } from '../matrix/clients.ts';
import { testCell } from '../matrix/define-matrix.ts';
import { CONVERSATION } from '../matrix/scenarios.ts';
import { OTHER_CARRIERS, SERVER_NAMES, SERVERS } from '../matrix/servers.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { startClusterFront } from './front.ts';

/** Registers every scenario of the matrix for this client with the servers of MCP's own transports, behind three replicas. */
export function testClusterMatrixOf(test: TestFn, client: ClientName): void {
  if (WHY_NO_CLUSTER !== undefined) {
    test.skip(`${client} through a balancer (${WHY_NO_CLUSTER})`, (t) => t.fail());
    return;
  }
  // Replicas reach servers at other carriers as a single bridge does.
  const servers = SERVER_NAMES.filter((name) => !OTHER_CARRIERS.includes(SERVERS[name].over));
  for (const server of servers) testCell(test, new Cell(client, server, startClusterFront), CONVERSATION);
}
