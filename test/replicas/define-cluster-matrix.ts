import type { TestFn } from 'ava';
import { Cell } from '../matrix/cell.ts';
import type { ClientName } from '../matrix/clients.ts';
import { testCell } from '../matrix/define-matrix.ts';
import { CONVERSATION } from '../matrix/scenarios.ts';
import { SERVER_NAMES } from '../matrix/servers.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { startClusterFront } from './front.ts';

/** Registers every scenario of the matrix for this client with every server, behind three replicas. */
export function testClusterMatrixOf(test: TestFn, client: ClientName): void {
  if (WHY_NO_CLUSTER !== undefined) {
    test.skip(`${client} through a balancer (${WHY_NO_CLUSTER})`, (t) => t.fail());
    return;
  }
  for (const server of SERVER_NAMES) testCell(test, new Cell(client, server, startClusterFront), CONVERSATION);
}
