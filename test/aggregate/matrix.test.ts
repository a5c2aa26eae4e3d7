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

/** Where the aggregate shows itself, and not the server behind it; test/aggregate has these of its own. */
const OF_THE_SERVER: readonly string[] = [
  'the handshake shows the server itself',
  'each side learns the extensions of the other, with all their settings',
  'lists come page by page, with the cursors of the server',
  'a cursor that is not of the server is refused by the server',
];
const PASSING = SCENARIOS.filter(({ title }) => !OF_THE_SERVER.includes(title));

for (const [client, server] of PAIRS)
  testCell(test, new Cell(client, server, besideOwnServer(startBehindAggregate)), PASSING);
