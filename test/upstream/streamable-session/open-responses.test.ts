import type { ServerResponse } from 'node:http';
import test from 'ava';
import { type Act, listenScripted, openStream } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient, joinClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

/** Takes a message, and never ends its response. */
const acceptWithoutEnd: Act = (_, response) => void response.writeHead(202).write(' ');

test('a response to initialized that never ends holds up neither calls nor the event stream', async (t) => {
  const streams: ServerResponse[] = [];
  const server = await listenScripted({
    'notifications/initialized': acceptWithoutEnd,
    GET: (_, response) => {
      streams.push(openStream(response));
      response.flushHeaders();
    },
  });
  // Time stands still: nothing is waited for.
  const dialer = dialStreamable(server.url, { client: { clock: new FakeClock() } });
  const client = await connectClient(t, server, dialer);
  t.deepEqual((await client.request('tools/list')).result, {});
  t.is(streams.length, 1);
});

test('nor does it hold up the session that takes the place of a lost one', async (t) => {
  const server = await listenScripted({ 'notifications/initialized': acceptWithoutEnd });
  const dialer = dialStreamable(server.url, { client: { clock: new FakeClock() } });
  const client = await connectClient(t, server, dialer);
  server.rewrite({
    'tools/list': ({ headers, message: { id } }, response) => {
      const isOld = headers['mcp-session-id'] === 'session-1';
      response.writeHead(isOld ? 404 : 200, { 'Content-Type': 'application/json' });
      response.end(isOld ? '' : JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [] } }));
    },
  });
  t.deepEqual((await client.request('tools/list')).result, { tools: [] });
});

test('of responses to notifications that never end some are kept, and each is sent all the same', async (t) => {
  const server = await listenScripted({ 'notifications/roots/list_changed': acceptWithoutEnd });
  const client = joinClient(t, server, dialStreamable(server.url));
  await client.initialize();
  for (let count = 0; count < 100; count++) client.notify('notifications/roots/list_changed');
  await waitFor(() => server.order.filter((name) => name.includes('roots')).length === 100);
  t.deepEqual((await client.request('tools/list')).result, {});
  await waitFor(() => server.open.size < 30, { message: () => `${server.open.size} connections to become fewer` });
  // The last ones may still have something to say.
  t.true(server.open.size > 10);
});

test('a page in response to a notification is read to its end, which keeps the connection', async (t) => {
  const server = await listenScripted({
    'notifications/roots/list_changed': (_, response) => {
      response.writeHead(202, { 'Content-Type': 'text/html; charset=UTF-8' }).end('<p>Accepted</p>');
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  for (let count = 0; count < 10; count++) client.notify('notifications/roots/list_changed');
  t.deepEqual((await client.request('tools/list')).result, {});
  await waitFor(() => server.order.filter((name) => name.includes('roots')).length === 10);
  t.true(new Set(server.received.map(({ connection }) => connection)).size < 5);
});
