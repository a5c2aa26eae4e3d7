import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { LATE_ANSWER_MS } from '../../../src/upstream/remote/posted-call.ts';
import { type Act, event, listenScripted, openStream, resultOf } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

/** A server with an event stream, whose responses to calls hold no answer. */
async function listenElsewhere(call: Act) {
  const streams: ServerResponse[] = [];
  const server = await listenScripted({
    GET: (_, response) => {
      streams.push(openStream(response));
      response.flushHeaders();
    },
    'tools/call': call,
  });
  return { server, streams };
}

const ways: Record<string, Act> = {
  'an empty stream': (_, response) => void openStream(response).end(),
  'a stream that is cut off': (_, response) => {
    openStream(response).write(': \n\n');
    setTimeout(() => response.destroy(), 20);
  },
  'a stream of progress alone': (_, response) =>
    void openStream(response).end(event({ jsonrpc: '2.0', method: 'notifications/message', params: {} })),
  '202': (_, response) => void response.writeHead(202).end(),
};

for (const [way, act] of Object.entries(ways)) {
  test(`an answer that comes on the event stream after ${way} is the call’s, and nothing is withdrawn`, async (t) => {
    const { server, streams } = await listenElsewhere(act);
    const client = await connectClient(t, server, dialStreamable(server.url));
    const id = client.start('tools/call', { name: 'x' });
    const asked = await waitFor(() => server.messages.find(({ message }) => message.id === id));
    // By then the response to the call has ended.
    await waitFor(async () => (await client.request('tools/list')).result !== undefined);
    t.false(client.received.some((message) => message.id === id));
    streams[0]?.write(event(resultOf(asked, 'late')));
    t.like((await client.answer(id)).result, { content: [{ text: 'late' }] });
    await client.request('tools/list');
    t.false(server.order.includes('notifications/cancelled'));
    t.is(server.order.filter((name) => name === 'tools/call').length, 1);
  });
}

test('an answer that comes on the event stream before the response to its call is the only one', async (t) => {
  let refuse: (() => void) | undefined;
  const { server, streams } = await listenElsewhere((_, response) => {
    refuse = () => response.writeHead(404).end();
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  const refuseNow = await waitFor(() => refuse);
  streams[0]?.write(event({ jsonrpc: '2.0', id, result: {} }));
  t.deepEqual((await client.answer(id)).result, {});
  refuseNow();
  await client.request('tools/list');
  t.is(server.order.filter((name) => name === 'initialize').length, 1, 'the session is not opened anew');
  t.is(server.order.filter((name) => name === 'tools/call').length, 1, 'the call is not repeated');
});

test('a call whose response was cut off fails after a while, and when the event stream is over', async (t) => {
  const clock = new FakeClock();
  const { server, streams } = await listenElsewhere(ways['a stream that is cut off'] as Act);
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => {
    clock.advance(LATE_ANSWER_MS / 10);
    return client.received.some((message) => message.id === id);
  });
  t.regex((await client.answer(id)).error?.message ?? '', /broke the stream off before the answer/);
  const next = client.start('tools/call', { name: 'x' });
  await client.request('tools/list');
  server.rewrite({ GET: (_, response) => void response.writeHead(405).end() });
  streams.at(-1)?.end('retry: 0\n\n');
  await waitFor(() => {
    clock.advance(100);
    return client.received.some((message) => message.id === next);
  });
  t.truthy((await client.answer(next)).error);
});

test('a call whose response was cut off fails when no server can be reached anymore', async (t) => {
  const { server } = await listenElsewhere(ways['a stream that is cut off'] as Act);
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  await client.request('tools/list');
  const startedMs = Date.now();
  await server.close();
  t.regex((await client.answer(id)).error?.message ?? '', /broke the stream off before the answer/);
  t.true(Date.now() - startedMs < LATE_ANSWER_MS / 2);
});

test('a call whose response was cut off is waited for where the server numbers its events, and may send them again', async (t) => {
  const clock = new FakeClock();
  const { server, streams } = await listenElsewhere(ways['a stream that is cut off'] as Act);
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const id = client.start('tools/call', { name: 'x' });
  await client.request('tools/list');
  await waitFor(() => streams[0]).then((stream) => stream.write('id: 1\ndata:\n\n'));
  await client.request('tools/list');
  await server.close();
  clock.advance(LATE_ANSWER_MS / 2);
  await turn();
  t.false(client.received.some((message) => message.id === id));
  await waitFor(() => {
    clock.advance(LATE_ANSWER_MS / 10);
    return client.received.some((message) => message.id === id);
  });
});

test('a withdrawn call is not waited for', async (t) => {
  const { server, streams } = await listenElsewhere(ways['202'] as Act);
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => server.order.includes('tools/call'));
  client.notify('notifications/cancelled', { requestId: id });
  await waitFor(() => server.order.includes('notifications/cancelled'));
  streams[0]?.write(event({ jsonrpc: '2.0', id, result: {} }));
  await client.request('tools/list');
  t.false(client.received.some((message) => message.id === id));
});
