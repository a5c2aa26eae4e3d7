import test from 'ava';
import { listenOld } from '../../fixtures/http-servers/old-server.ts';
import { listenScripted, openStream } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { joinClient } from '../connect.ts';
import { dialHttpSse, dialStreamable } from '../remote-dialers.ts';

const TOKEN = 'x-token';

test('what a session sends by itself carries the values of its caller, the newest where they have changed', async (t) => {
  const server = await listenScripted({ GET: (_, response) => openStream(response).flushHeaders() });
  const dialer = dialStreamable(server.url);
  const client = joinClient(t, server, dialer, { headers: { [TOKEN]: 'old' } });
  await client.initialize();
  await client.request('tools/list');
  await waitFor(() => server.order.includes('GET'));
  t.deepEqual([...new Set(server.received.map(({ headers }) => headers[TOKEN]))], ['old']);
  const before = server.received.length;
  client.headers = { [TOKEN]: 'new' };
  server.rewrite({
    'tools/list': ({ headers, message }, response) => {
      const isKnown = headers['mcp-session-id'] !== 'session-1';
      response.writeHead(isKnown ? 200 : 404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: {} }));
    },
  });
  // The server has forgotten the session: another is opened, and its stream.
  await client.request('tools/list');
  await waitFor(() => server.order.filter((name) => name === 'GET').length === 2);
  client.close();
  await waitFor(() => server.order.includes('DELETE'));
  const since = server.received.slice(before).map(({ headers }) => headers[TOKEN]);
  t.true(since.length >= 5);
  t.deepEqual([...new Set(since)], ['new']);
});

test('the stream of a session over HTTP+SSE is opened with the values of its caller', async (t) => {
  const { server } = await listenOld();
  const client = joinClient(t, server, dialHttpSse(server.url), { headers: { [TOKEN]: 'mine' } });
  await client.initialize();
  await client.request('tools/list');
  await waitFor(() => server.received.length === 4);
  t.deepEqual([...new Set(server.received.map(({ headers }) => headers[TOKEN]))], ['mine']);
});

test('a caller that shows no values anymore has none shown for it', async (t) => {
  const server = await listenScripted();
  const client = joinClient(t, server, dialStreamable(server.url), { headers: { [TOKEN]: 'old' } });
  await client.initialize();
  client.headers = undefined;
  await client.request('tools/list');
  client.notify('notifications/roots/list_changed');
  await waitFor(() => server.order.includes('notifications/roots/list_changed'));
  const shown = new Map(server.messages.map(({ message, headers }) => [message.method, headers[TOKEN]]));
  t.is(shown.get('notifications/initialized'), 'old');
  t.is(shown.get('tools/list'), undefined);
  t.is(shown.get('notifications/roots/list_changed'), undefined);
});
