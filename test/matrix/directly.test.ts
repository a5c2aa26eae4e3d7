import test from 'ava';
import { besideOwnServer, Cell } from './cell.ts';
import { CLIENT_NAMES, CLIENTS } from './clients.ts';
import { testCell } from './define-matrix.ts';
import { startDirectly } from './fronts.ts';
import { CONVERSATION } from './scenarios.ts';
import { SERVER_NAMES, SERVERS } from './servers.ts';

/** Without a bridge, so that the matrix does not ask of it what the SDKs do not do among themselves. */
for (const client of CLIENT_NAMES) {
  for (const server of SERVER_NAMES) {
    const { era, over } = CLIENTS[client];
    if (era !== SERVERS[server].era || over !== SERVERS[server].over) continue;
    testCell(test, new Cell(client, server, besideOwnServer(startDirectly)), CONVERSATION);
  }
}
