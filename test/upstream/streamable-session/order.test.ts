import type { ServerResponse } from 'node:http';
import test from 'ava';
import { accept, answerResult, listenScripted, openStream } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient, joinClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

test('names the session and the agreed revision on everything but initialize', async (t) => {
  const server = await listenScripted({ GET: (_, response) => void openStream(response).write(': hello\n\n') });
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('tools/list');
  await waitFor(() => server.order.includes('GET'));
  client.close();
  await waitFor(() => server.order.includes('DELETE'));
  const [initialize, ...later] = server.received;
  t.is(initialize?.headers['mcp-session-id'], undefined);
  t.is(initialize?.headers['mcp-protocol-version'], undefined);
  t.is(initialize?.headers.accept, 'application/json, text/event-stream');
  t.is(initialize?.headers['content-type'], 'application/json');
  t.is(later.length, 4);
  for (const { headers } of later) {
    t.is(headers['mcp-session-id'], 'session-1');
    t.is(headers['mcp-protocol-version'], '2025-11-25');
  }
});

for (const [revision, header] of [
  ['2024-11-05', undefined],
  ['2025-03-26', undefined],
  ['2025-06-18', '2025-06-18'],
] as const) {
  test(`a server that agrees on ${revision} gets ${header ?? 'no'} version header`, async (t) => {
    const server = await listenScripted({}, { protocolVersion: revision });
    const client = await connectClient(t, server, dialStreamable(server.url));
    await client.request('tools/list');
    t.is(server.messages.at(-1)?.headers['mcp-protocol-version'], header);
  });
}

test('a server without sessions is sent no session id and no DELETE', async (t) => {
  const server = await listenScripted({}, { sessionId: null });
  const dialer = dialStreamable(server.url);
  const client = await connectClient(t, server, dialer);
  await client.request('tools/list');
  client.close();
  await dialer.close();
  t.is(server.messages.at(-1)?.headers['mcp-session-id'], undefined);
  t.false(server.order.includes('DELETE'));
});

test('nothing overtakes initialize', async (t) => {
  let held: (() => void) | undefined;
  const server = await listenScripted();
  server.rewrite({
    initialize: (asked, response) => {
      held = () => answerResult(asked, response, { protocolVersion: '2025-11-25', capabilities: {} });
    },
  });
  const client = joinClient(t, server, dialStreamable(server.url));
  client.startInitialize();
  client.notify('notifications/initialized');
  const list = client.start('tools/list');
  await waitFor(() => held !== undefined);
  // Another connection would have been there long ago.
  await fetch(server.url, { method: 'DELETE' });
  t.deepEqual(server.order, ['initialize', 'DELETE']);
  held?.();
  await client.answer(list);
  t.deepEqual(server.order.filter((name) => name !== 'GET').slice(2), ['notifications/initialized', 'tools/list']);
});

test('nothing leaves before initialized has arrived', async (t) => {
  let initialized: ServerResponse | undefined;
  const server = await listenScripted({
    'notifications/initialized': (_, response) => {
      initialized = response;
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const list = client.start('tools/list');
  client.notify('notifications/roots/list_changed');
  await waitFor(() => initialized !== undefined);
  await fetch(server.url, { method: 'DELETE' });
  t.deepEqual(server.order, ['initialize', 'notifications/initialized', 'DELETE']);
  initialized?.writeHead(202).end();
  await client.answer(list);
});

test('notifications and answers keep their order, requests run beside them', async (t) => {
  let takeSlow: (() => void) | undefined;
  const server = await listenScripted({
    'notifications/slow': (asked, response) => {
      takeSlow = () => accept(asked, response);
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  client.notify('notifications/slow', { n: 1 });
  for (const n of [2, 3, 4]) client.notify('notifications/quick', { n });
  await client.request('tools/list');
  const take = await waitFor(() => takeSlow);
  t.false(server.order.includes('notifications/quick'), 'the request did not wait');
  take();
  await waitFor(() => server.messages.filter(({ message }) => message.method === 'notifications/quick').length === 3);
  t.deepEqual(
    server.messages.map(({ message }) => message.params?.n).filter((n) => n !== undefined),
    [1, 2, 3, 4],
  );
});

test('a withdrawn call that has not left is never sent, nor is its withdrawal', async (t) => {
  let held: (() => void) | undefined;
  const server = await listenScripted();
  server.rewrite({
    initialize: (asked, response) => {
      held = () => answerResult(asked, response, { protocolVersion: '2025-11-25', capabilities: {} });
    },
  });
  const client = joinClient(t, server, dialStreamable(server.url));
  client.startInitialize();
  const id = client.start('tools/call', { name: 'x' });
  client.notify('notifications/cancelled', { requestId: id });
  await waitFor(() => held !== undefined);
  held?.();
  client.notify('notifications/initialized');
  await client.request('tools/list');
  t.deepEqual(
    server.order.filter((name) => name !== 'GET'),
    ['initialize', 'notifications/initialized', 'tools/list'],
  );
});

test('a call withdrawn while it is being sent is not sent', async (t) => {
  const server = await listenScripted();
  const client = await connectClient(t, server, dialStreamable(server.url));
  await client.request('tools/list');
  const id = client.start('tools/call', { name: 'x' });
  client.notify('notifications/cancelled', { requestId: id });
  client.notify('notifications/last');
  await waitFor(() => server.order.includes('notifications/last'));
  await client.request('tools/list');
  t.false(server.order.includes('tools/call'));
  t.false(server.order.includes('notifications/cancelled'));
});

test('passes the headers of a call on with that call, and those of the latest with what is no call', async (t) => {
  const server = await listenScripted();
  const headers = { 'x-request-id': '42', cookie: 'a=b' };
  const client = await connectClient(t, server, dialStreamable(server.url), { headers });
  await client.request('tools/list');
  const call = server.messages.at(-1);
  t.is(call?.headers['x-request-id'], '42');
  t.is(call?.headers.cookie, undefined);
  t.is(
    server.messages.find(({ message }) => message.method === 'notifications/initialized')?.headers['x-request-id'],
    '42',
  );
});

test('keeps cookies within a session and away from others', async (t) => {
  const server = await listenScripted({
    'tools/list': (asked, response) => {
      response.setHeader('Set-Cookie', 'node=7; Path=/');
      answerResult(asked, response, { cookie: asked.headers.cookie ?? 'none' });
    },
  });
  const dialer = dialStreamable(server.url);
  const client = await connectClient(t, server, dialer);
  t.is((await client.request('tools/list')).result?.cookie, 'none');
  t.is((await client.request('tools/list')).result?.cookie, 'node=7');
  const other = await connectClient(t, server, dialer);
  t.is((await other.request('tools/list')).result?.cookie, 'none');
});

test('asks its own side to stop while much waits to leave', async (t) => {
  let held: (() => void) | undefined;
  const server = await listenScripted();
  server.rewrite({
    initialize: (asked, response) => {
      held = () => answerResult(asked, response, { protocolVersion: '2025-11-25', capabilities: {} });
    },
  });
  const client = joinClient(t, server, dialStreamable(server.url));
  client.startInitialize();
  let count = 0;
  while (!client.peer.isPaused && count < 1000) client.notify('notifications/x', { n: count++ });
  t.true(count < 1000);
  await waitFor(() => held !== undefined);
  held?.();
  await waitFor(() => !client.peer.isPaused, { message: 'capacity again' });
  await waitFor(() => server.messages.length === count + 1);
});
