import type { ServerResponse } from 'node:http';
import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { type Act, event, notification, openStream, resultOf } from '../../fixtures/http-servers/scripted.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectScripted, testBothWays } from './connect-modern.ts';

/** Holds calls open, and notes which of them are given up. */
function holding(isStream: boolean) {
  const open: ServerResponse[] = [];
  const left: unknown[] = [];
  const act: Act = ({ message }, response) => {
    open.push(response);
    if (isStream) openStream(response).write(': working\n\n');
    response.on('close', () => void left.push(message.params?.name));
  };
  return { act, open, left };
}

for (const isStream of [false, true]) {
  const when = isStream ? 'whose stream is open' : 'that has no response yet';
  testBothWays(`a call ${when} is withdrawn by closing its connection; nothing is posted`, async (t) => {
    const { act, left, open } = holding(isStream);
    const { client, server } = await connectScripted(t, { 'prompts/get': act });
    const id = client.start('prompts/get', { name: 'withdrawn' });
    client.start('prompts/get', { name: 'kept' });
    await waitFor(() => open.length === 2);
    client.cancel(id);
    await waitFor(() => left.length === 1);
    t.deepEqual(left, ['withdrawn']);
    await client.request('tools/list');
    t.deepEqual(server.order, ['prompts/get', 'prompts/get', 'tools/list']);
    t.deepEqual(
      client.received.map((message) => message.id),
      [3],
    );
  });

  testBothWays(`a client that leaves gives up its calls (${when}), and no one else’s`, async (t) => {
    const { act, left, open } = holding(isStream);
    const { client, connect, server } = await connectScripted(t, { 'prompts/get': act });
    const other = connect();
    for (const name of ['a', 'b']) client.start('prompts/get', { name });
    other.start('prompts/get', { name: 'of another' });
    await waitFor(() => open.length === 3);
    client.close();
    await waitFor(() => left.length === 2);
    t.deepEqual([...left].sort(), ['a', 'b']);
    await other.request('tools/list');
    t.is(left.length, 2);
    t.false(server.order.includes('notifications/cancelled'));
  });
}

testBothWays('nothing of a withdrawn call arrives anymore', async (t) => {
  const { act, open } = holding(true);
  const { client } = await connectScripted(t, { 'prompts/get': act });
  const id = client.start('prompts/get', { name: 'x', _meta: { progressToken: 1 } });
  await waitFor(() => open.length === 1);
  client.cancel(id);
  open[0]?.end(event(notification('notifications/message', { level: 'info', data: 1 })));
  await client.request('tools/list');
  t.is(client.received.length, 1);
});

testBothWays('a withdrawal of what is answered, or was never asked, does nothing', async (t) => {
  const { client, server } = await connectScripted(t, {});
  await client.request('tools/list');
  client.cancel(1);
  client.cancel('never');
  await client.request('tools/list');
  t.deepEqual(server.order, ['tools/list', 'tools/list']);
});

testBothWays('a translator that asks without a call withdraws by id', async (t) => {
  const { act, open, left } = holding(false);
  const { dialer } = await connectScripted(t, { 'prompts/get': act });
  const link = dialer.dial(new FakeServerListener());
  for (const id of [1, '1']) link.send(clientFrame({ id, method: 'prompts/get', params: { name: typeof id } }));
  await waitFor(() => open.length === 2);
  link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: '1' } }));
  await waitFor(() => left.length === 1);
  t.deepEqual(left, ['string']);
});

testBothWays('after its end a link says nothing more', async (t) => {
  const { act, open } = holding(false);
  const { dialer } = await connectScripted(t, { 'prompts/get': act });
  const listener = new FakeServerListener();
  const link = dialer.dial(listener);
  link.send(clientFrame({ id: 1, method: 'prompts/get', params: {} }));
  await waitFor(() => open.length === 1);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  t.true(link.send(clientFrame({ id: 2, method: 'prompts/get', params: {} })));
  await waitFor(() => open[0]?.destroyed);
  t.deepEqual([listener.received, listener.faults, listener.closedWith, listener.drains], [[], [], [], 0]);
  t.is(open.length, 1);
});

test('a notification that nobody knows is posted; a client answers nobody', async (t) => {
  const { client, server, dialer } = await connectScripted(t, {
    'notifications/refused': (_, response) => void response.writeHead(400).end(),
  });
  client.notify('notifications/vendor', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } });
  await waitFor(() => server.order.length === 1);
  client.notify('notifications/refused');
  dialer.dial(new FakeServerListener()).send(clientFrame({ id: 1, result: {} }));
  await waitFor(() => server.order.length === 2);
  await client.request('tools/list');
  t.deepEqual(server.order, ['notifications/vendor', 'notifications/refused', 'tools/list']);
  t.is(server.messages[0]?.headers['mcp-method'], 'notifications/vendor');
  t.is(client.received.length, 1);
});

test('responses to notifications that never end take no turn of a call', async (t) => {
  const { client, server } = await connectScripted(t, {
    'notifications/vendor': (_, response) => void response.writeHead(202).write(' '),
  });
  for (let count = 0; count < 130; count++) client.notify('notifications/vendor');
  t.deepEqual((await client.request('tools/list')).result, {});
  await waitFor(() => server.open.size <= 1);
  t.is(server.order.length, 131);
});

testBothWays('when the dialer closes, calls end with their clients and no connection stays', async (t) => {
  const { act, open } = holding(true);
  const { client, dialer, server } = await connectScripted(t, { 'prompts/get': act });
  client.start('prompts/get', { name: 'x' });
  await waitFor(() => open.length === 1);
  await dialer.close();
  await waitFor(() => server.open.size === 0);
  t.throws(() => dialer.dial(new FakeServerListener()), { code: 'ERR_SESSION_CLOSED' });
});

test('at once there are as many posts as allowed; the others wait for their turn, and can be withdrawn before', async (t) => {
  const waiting: (() => void)[] = [];
  const { client, server } = await connectScripted(t, {
    'prompts/get': (asked, response) =>
      void waiting.push(() => response.end(JSON.stringify(resultOf(asked, String(asked.message.params?.name))))),
  });
  for (let n = 1; n <= 132; n += 1) client.start('prompts/get', { name: n }, n);
  await waitFor(() => waiting.length === 128);
  client.cancel(130);
  for (const answer of waiting.splice(0)) answer();
  await waitFor(() => waiting.length === 3);
  for (const answer of waiting) answer();
  await client.answer(132);
  t.is(server.order.filter((method) => method === 'prompts/get').length, 131);
  t.false(client.received.some(({ id }) => id === 130));
});
