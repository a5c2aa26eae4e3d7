/** The report on servers that take WebSockets. */
import test from 'ava';
import { exitCodeOf } from '../../src/probe/report.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer } from '../support/websocket-server.ts';
import { probe } from './run.ts';

test('a server over WebSocket is asked on its connections, and each kind of client told how to use it', async (t) => {
  const server = await startWebSocketServer();
  t.teardown(() => server.stop());
  const report = await probe(server.url);
  t.like(
    report.offers.find(({ works }) => works),
    { transport: 'websocket', era: 'legacy', revision: '2025-11-25' },
  );
  t.true(report.clients.every(({ way, command }) => way === 'portage' && command?.endsWith(server.url.href) === true));
  await waitFor(() => server.open.size === 0, { message: 'all connections to be closed' });
});

test('a server that refuses the handshake for want of credentials is reported so', async (t) => {
  const server = await startWebSocketServer({ refuse: () => ({ status: 401 }) });
  t.teardown(() => server.stop());
  const report = await probe(server.url);
  t.is(report.verdict, 'unauthorized');
  t.is(report.authorization?.status, 401);
  t.is(exitCodeOf(report), 77);
});

test('a server without WebSockets at this URL is reported so', async (t) => {
  const server = await startWebSocketServer({ refuse: () => ({ status: 404, body: 'nothing here' }) });
  t.teardown(() => server.stop());
  const report = await probe(server.url);
  t.is(report.verdict, 'unusable');
  t.regex(report.problems.join(), /answered 404.*leads to its WebSocket endpoint/);
});
