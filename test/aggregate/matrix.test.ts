import test from 'ava';
import { besideOwnServer, Cell } from '../matrix/cell.ts';
import type { ClientName } from '../matrix/clients.ts';
import { testCell } from '../matrix/define-matrix.ts';
import { SCENARIOS } from '../matrix/scenarios.ts';
import type { ServerName } from '../matrix/servers.ts';
import { startBehindAggregate } from './behind-aggregate.ts';

/** Every pair of eras, and each transport of the specification on either side. */
const PAIRS: readonly (readonly [ClientName, ServerName])[] = [
  ['stdio', 'stdio'],
  ['streamable', 'stateful'],
  ['httpSse', 'stdio'],
  ['modernHttp', 'stdio'],
  ['modernHttp', 'modernHttp'],
  ['streamable', 'modernStdio'],
  ['modernStdio', 'httpSse'],
];

for (const [client, server] of PAIRS)
  testCell(test, new Cell(client, server, besideOwnServer(startBehindAggregate)), SCENARIOS);
