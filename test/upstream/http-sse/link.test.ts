import type { ServerResponse } from 'node:http';
import test from 'ava';
import { LINGERING_LIMITS } from '../../../src/upstream/http-sse/link.ts';
import { LATE_ANSWER_MS } from '../../../src/upstream/remote/posted-call.ts';
import { acceptOld, ENDPOINT, listenOld } from '../../fixtures/http-servers/old-server.ts';
import { event, notification, openStream } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startHttpSse } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient, joinClient } from '../connect.ts';
import { dialHttpSse } from '../remote-dialers.ts';

test('posts to the endpoint that was announced, everything in one session', async (t) => {
  const { server, posted } = await listenOld();
  const client = await connectClient(t, server, dialHttpSse(server.url));
  t.deepEqual((await client.request('tools/list')).result, {});
  t.deepEqual(
    posted.map(({ path, message }) => `${path} ${message.method}`),
    ['initialize', 'notifications/initialized', 'tools/list'].map((method) => `/messages?session=1 ${method}`),
  );
  const [get] = server.received;
  t.is(get?.headers.accept, 'text/event-stream');
  t.is(server.received.filter(({ method }) => method === 'GET').length, 1);
});

test('messages wait for the endpoint, in their order, and the sender is asked to stop', async (t) => {
  let stream: ServerResponse | undefined;
  const { server, posted } = await listenOld({
    get: (_, response) => {
      stream = openStream(response);
      response.flushHeaders();
    },
  });
  const client = joinClient(t, server, dialHttpSse(server.url));
  let count = 0;
  while (!client.peer.isPaused && count < 1000) client.notify('notifications/x', { n: count++ });
  t.true(count < 1000);
  (await waitFor(() => stream)).write(ENDPOINT);
  await waitFor(() => posted.length === count);
  t.false(client.peer.isPaused);
  t.deepEqual(
    posted.map(({ message }) => message.params?.n),
    Array.from({ length: count }, (_, n) => n),
  );
});

for (const status of [200, 202, 204]) {
  test(`${status} is as good as 202, whatever the body`, async (t) => {
    const { server } = await listenOld({
      post: (posted, response, stream) => {
        response.writeHead(status).end(status === 204 ? undefined : '{"jsonrpc":"2.0","id":2,"result":{"not":"read"}}');
        stream.write(event({ jsonrpc: '2.0', id: posted.message.id, result: { from: 'the stream' } }));
      },
    });
    const client = await connectClient(t, server, dialHttpSse(server.url));
    t.deepEqual((await client.request('tools/list')).result, { from: 'the stream' });
  });
}

test('a message the server does not take fails alone, its JSON-RPC error passed on', async (t) => {
  const { server } = await listenOld({
    post: (posted, response, stream) => {
      const { id, method } = posted.message;
      if (method === 'plain') return void response.writeHead(400).end('Invalid message');
      if (method !== 'rpc') return acceptOld(posted, response, stream);
      const error = { code: -32601, message: 'not here' };
      response
        .writeHead(400, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    },
  });
  const client = await connectClient(t, server, dialHttpSse(server.url));
  t.regex((await client.request('plain')).error?.message ?? '', /answered 400 Bad Request: Invalid message/);
  t.deepEqual((await client.request('rpc')).error, { code: -32601, message: 'not here' });
  t.deepEqual((await client.request('tools/list')).result, {});
  t.is(client.ended, undefined);
});

test('a message whose POST is cut off gets the answer that comes on the stream', async (t) => {
  const { server, streams } = await listenOld({
    post: (posted, response, stream) => {
      if (posted.message.method === 'tools/call') response.destroy();
      else acceptOld(posted, response, stream);
    },
  });
  const client = await connectClient(t, server, dialHttpSse(server.url));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => server.received.some(({ body }) => body.includes('tools/call')));
  t.deepEqual((await client.request('tools/list')).result, {});
  streams[0]?.write(event({ jsonrpc: '2.0', id, result: { late: true } }));
  t.deepEqual((await client.answer(id)).result, { late: true });
  t.is(server.received.filter(({ body }) => body.includes('tools/call')).length, 1);
});

test('a message whose POST is cut off fails when no answer has come after a while', async (t) => {
  const clock = new FakeClock();
  const { server } = await listenOld({
    post: (posted, response, stream) => {
      if (posted.message.method === 'tools/call') response.destroy();
      else acceptOld(posted, response, stream);
    },
  });
  const client = await connectClient(t, server, dialHttpSse(server.url, { client: { clock } }));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => {
    clock.advance(LATE_ANSWER_MS / 10);
    return client.received.some((message) => message.id === id);
  });
  t.regex((await client.answer(id)).error?.message ?? '', /whether the message was processed is not known/);
  t.deepEqual((await client.request('tools/list')).result, {});
});

test('messages split over data lines, cut anywhere and glued together are read', async (t) => {
  const { server, streams } = await listenOld();
  const client = await connectClient(t, server, dialHttpSse(server.url));
  const stream = await waitFor(() => streams[0]);
  const message = JSON.stringify(notification('notifications/x', { text: 'ä€😀' }), null, 2);
  const bytes = Buffer.from(`event: message\r\ndata: ${message.replaceAll('\n', '\r\ndata: ')}\r\n\r\n`);
  for (const byte of bytes) await new Promise((resolve) => stream.write(Buffer.of(byte), resolve));
  stream.write(bytes + event(notification('notifications/y')));
  await waitFor(() => client.notifications('notifications/y').length === 1);
  t.deepEqual(
    client.notifications('notifications/x').map(({ params }) => params?.text),
    ['ä€😀', 'ä€😀'],
  );
  t.false(client.receivedBytes.some((sent) => sent.includes(0x0a) || sent.includes(0x0d)));
});

test('an answer over the limit fails its call by the id at either end of it, and the session goes on', async (t) => {
  const padding = 'x'.repeat(300_000);
  const { server } = await listenOld({
    post: (posted, response, stream) => {
      const { id, method } = posted.message;
      if (method === 'head') stream.write(event(`{"jsonrpc":"2.0","id":${id},"result":{"x":"${padding}"}}`));
      else if (method === 'tail') stream.write(event(`{"result":{"x":"${padding}"},"jsonrpc":"2.0","id":${id}}`));
      else return acceptOld(posted, response, stream);
      response.writeHead(202).end();
    },
  });
  const client = await connectClient(t, server, dialHttpSse(server.url, { maxMessageBytes: 100_000 }));
  const answers = await Promise.all([client.request('head'), client.request('tail')]);
  for (const { error } of answers) t.regex(error?.message ?? '', /up to 100000 are allowed/);
  t.deepEqual((await client.request('tools/list')).result, {});
});

test('the end of the stream is the end of the session: nothing is opened again', async (t) => {
  const { server, streams } = await listenOld({
    opening: `retry: 1\n\n${ENDPOINT}`,
    post: (posted, response, stream) => {
      if (posted.message.method === 'never') return void response.writeHead(202).end();
      acceptOld(posted, response, stream);
    },
  });
  const dialer = dialHttpSse(server.url);
  const client = await connectClient(t, server, dialer);
  const id = client.start('never');
  await client.request('tools/list');
  server.cut();
  const { error } = await client.answer(id);
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } });
  t.is(client.ended?.code, 'ERR_UPSTREAM_CLOSED');
  // A whole other session takes longer than the package would to come back.
  const other = await connectClient(t, server, dialer);
  for (const _ of [1, 2, 3]) await other.request('tools/list');
  t.is(streams.length, 2);
});

test('a new session is a new stream', async (t) => {
  const server = await startHttpSse();
  const dialer = dialHttpSse(server.url);
  const first = await connectClient(t, server, dialer);
  await first.call('echo', { value: 'x' });
  server.cut();
  await waitFor(() => first.ended !== undefined);
  const second = await connectClient(t, server, dialer);
  t.is(await second.call('echo', { value: 'back' }), 'back');
});

test('closing ends the stream at once, and the dialer opens no more', async (t) => {
  const { server, streams } = await listenOld();
  const dialer = dialHttpSse(server.url);
  const client = await connectClient(t, server, dialer);
  await client.request('tools/list');
  client.close();
  client.close();
  await waitFor(() => streams[0]?.closed, { message: 'the stream to be closed' });
  await dialer.close();
  await waitFor(() => server.open.size === 0);
  t.throws(() => dialer.dial({} as never), { message: /shutting down/ });
});

test('a newer revision agreed on over this transport gets its header', async (t) => {
  const server = await startHttpSse();
  const client = await connectClient(t, server, dialHttpSse(server.url));
  await client.call('echo', { value: 'x' });
  const posts = server.asked.filter(({ method }) => method === 'POST');
  t.deepEqual(
    posts.map(({ headers }) => headers['mcp-protocol-version']),
    [undefined, '2025-11-25', '2025-11-25'],
  );
});

test('a withdrawal follows its call, and notifications their order', async (t) => {
  const { server, posted } = await listenOld({ post: (_, response) => void response.writeHead(202).end() });
  const client = await connectClient(t, server, dialHttpSse(server.url));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => posted.some(({ message }) => message.method === 'tools/call'));
  client.notify('notifications/cancelled', { requestId: id });
  const never = client.start('tools/call', { name: 'y' });
  client.notify('notifications/cancelled', { requestId: never });
  client.notify('notifications/last');
  await waitFor(() => posted.some(({ message }) => message.method === 'notifications/last'));
  t.deepEqual(
    posted.slice(2).map(({ message }) => message.method),
    ['tools/call', 'notifications/cancelled', 'notifications/last'],
  );
});

test('of responses to messages that never end some are kept, and no call waits for them', async (t) => {
  const { server } = await listenOld({
    post: ({ message: { id } }, response, stream) => {
      response.writeHead(202).write(' ');
      if (id !== undefined) stream.write(event({ jsonrpc: '2.0', id, result: { of: id } }));
    },
  });
  const client = await connectClient(t, server, dialHttpSse(server.url));
  for (let count = 0; count < 200; count++) t.deepEqual((await client.request('tools/list')).error, undefined);
  await waitFor(() => server.open.size < 80, { message: () => `${server.open.size} connections to become fewer` });
  t.true(server.open.size > 40);
});

test('nor are many kept of large messages, but the latest: a server may still be at work on it', async (t) => {
  const { server } = await listenOld({
    post: ({ message: { id } }, response, stream) => {
      response.writeHead(202).write(' ');
      if (id !== undefined) stream.write(event({ jsonrpc: '2.0', id, result: { of: id } }));
    },
  });
  const client = await connectClient(t, server, dialHttpSse(server.url));
  const text = 'x'.repeat(LINGERING_LIMITS.bytes);
  for (let count = 0; count < 3; count++) await client.request('tools/call', { name: 'x', arguments: { text } });
  // The event stream is the other one.
  await waitFor(() => server.open.size === 2, { message: () => `${server.open.size} connections to become two` });
  t.pass();
});
