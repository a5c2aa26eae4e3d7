import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import test from 'ava';
import { answerJson, listen } from '../../fixtures/http-servers/listen.ts';
import { waitFor } from '../../support/wait-for.ts';
import { closeAfter, createClient, RecordedCall } from '../recorded-call.ts';

test('hands over head, body and end in order, and keeps the connection for the next request', async (t) => {
  const server = await listen((request, response) => answerJson(response, { echoed: request.body }));
  const client = createClient();
  closeAfter(t, client, server);
  const first = await new RecordedCall(client, server.url, { body: Buffer.from('one') }).finished();
  t.deepEqual(first.order, ['sent', 'response', 'data', 'end']);
  t.is(first.head?.status, 200);
  t.is(first.body, '{"echoed":"one"}');
  const second = await new RecordedCall(client, server.url, { body: Buffer.from('two') }).finished();
  t.is(second.body, '{"echoed":"two"}');
  t.deepEqual(
    server.received.map(({ connection }) => connection),
    [1, 1],
  );
  t.is(server.received[0]?.headers['content-length'], '3');
  t.is(server.received[0]?.headers['accept-encoding'], 'identity');
});

test('connects by whichever address of a name answers', async (t) => {
  // localhost usually resolves to ::1 first, where nothing listens.
  const server = await listen((_, response) => answerJson(response, {}));
  const client = createClient();
  closeAfter(t, client, server);
  const url = new URL(`http://localhost:${server.port}/`);
  t.is((await new RecordedCall(client, url).finished()).head?.status, 200);
});

test('names what went wrong and the way out, without userinfo and query', async (t) => {
  const server = await listen(() => {});
  await server.close();
  const client = createClient();
  closeAfter(t, client);
  const refused = await new RecordedCall(client, new URL(`${server.url}?key=secret`)).finished();
  t.is(refused.failure?.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(refused.failure?.message ?? '', /127\.0\.0\.1:\d+\/mcp: nothing listens there.*ECONNREFUSED/);
  t.notRegex(refused.failure?.message ?? '', /secret/);
  const unknown = await new RecordedCall(client, new URL('http://no-such-host.invalid/mcp')).finished();
  t.regex(unknown.failure?.message ?? '', /its name cannot be resolved/);
});

test('an answer that breaks off fails after what had come', async (t) => {
  const server = await listen((_, response) => {
    response.writeHead(200, { 'Content-Length': '100' }).write('half');
    setTimeout(() => response.destroy(), 20);
  });
  const client = createClient();
  closeAfter(t, client, server);
  const call = await new RecordedCall(client, server.url).finished();
  t.is(call.body, 'half');
  t.is(call.failure?.code, 'ERR_UPSTREAM_CLOSED');
});

test('what is not HTTP, or has endless headers, is an error and not a crash', async (t) => {
  const raw = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (request) => {
      if (request.includes('/garbage')) return void socket.end('SSH-2.0-OpenSSH_9\r\n');
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write(`X-${Math.random()}: ${'x'.repeat(1000)}\r\n`), 1);
      socket.on('close', () => clearInterval(timer));
    });
  });
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(raw.address() as AddressInfo).port}`;
  const client = createClient();
  closeAfter(t, client, raw);
  const garbage = await new RecordedCall(client, new URL('/garbage', origin)).finished();
  t.is(garbage.failure?.code, 'ERR_UPSTREAM_UNREADABLE');
  t.regex(garbage.failure?.message ?? '', /it is SSH\. Check the port/);
  const endless = await new RecordedCall(client, new URL('/endless', origin)).finished();
  t.regex(endless.failure?.message ?? '', /it is headers without end.*\(HPE_HEADER_OVERFLOW\)/);
});

test('an answer that switches to another protocol is refused clearly, and its connection closed', async (t) => {
  const open = new Set<Socket>();
  const raw = createServer((socket) => {
    open.add(socket.on('error', () => undefined).on('close', () => open.delete(socket)));
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello');
    });
  });
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
  const client = createClient();
  closeAfter(t, client, raw);
  const url = new URL(`http://127.0.0.1:${(raw.address() as AddressInfo).port}/`);
  for (const method of ['POST', 'GET'] as const) {
    const { failure, order } = await new RecordedCall(client, url, { method }).finished();
    t.is(failure?.code, 'ERR_UPSTREAM_HTTP');
    t.regex(failure?.message ?? '', /answered 101, to go on with another protocol/);
    t.deepEqual(order, ['sent', 'error']);
  }
  await waitFor(() => open.size === 0);
});

test('an answer that is as it is is taken, whatever it is called', async (t) => {
  for (const encoding of ['identity', '', 'utf-8']) {
    const server = await listen((_, response) => {
      response.writeHead(200, { 'Content-Encoding': encoding }).end('x');
    });
    const client = createClient();
    closeAfter(t, client, server);
    const { body, failure } = await new RecordedCall(client, server.url).finished();
    t.is(failure, undefined, encoding);
    t.is(body, 'x');
  }
});

/** Answers the first request of each connection and resets the connection at the second. */
async function listenStale() {
  const seen = new Set<number>();
  return listen(({ connection }, response) => {
    if (seen.has(connection)) return void response.socket?.resetAndDestroy();
    seen.add(connection);
    answerJson(response, {});
  });
}

test('a request on a stale connection is repeated once if that does no harm', async (t) => {
  const server = await listenStale();
  const client = createClient();
  closeAfter(t, client, server);
  await new RecordedCall(client, server.url).finished();
  const repeated = await new RecordedCall(client, server.url, { isRepeatable: true }).finished();
  t.is(repeated.head?.status, 200);
  t.deepEqual(
    server.received.map(({ connection }) => connection),
    [1, 1, 2],
  );
});

test('what is repeated leaves on a new connection: those that were idle longer are stale, too', async (t) => {
  const server = await listenStale();
  const client = createClient();
  closeAfter(t, client, server);
  await Promise.all([1, 2, 3].map(() => new RecordedCall(client, server.url).finished()));
  t.is(server.open.size, 3);
  const repeated = await new RecordedCall(client, server.url, { isRepeatable: true }).finished();
  t.is(repeated.head?.status, 200);
  t.is(server.received.at(-1)?.connection, 4);
});

test('a request that may have been processed is never repeated', async (t) => {
  const server = await listenStale();
  const client = createClient();
  closeAfter(t, client, server);
  await new RecordedCall(client, server.url).finished();
  const lost = await new RecordedCall(client, server.url).finished();
  t.is(lost.failure?.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(lost.failure?.message ?? '', /whether the message was processed is not known/);
  t.is(server.received.length, 2);
});

test('a large request of which a stale connection took only a part is repeated: nobody can have acted on it', async (t) => {
  const seen = new Set<Socket>();
  const server = createHttpServer((request, response) => {
    seen.add(request.socket);
    request.resume().on('end', () => answerJson(response, {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = createClient();
  closeAfter(t, client, server);
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await new RecordedCall(client, url, { body: Buffer.from('{}') }).finished();
  // Closed at the same moment, and the body is larger than what the system keeps between the two.
  for (const socket of seen) socket.destroy();
  const repeated = await new RecordedCall(client, url, { body: Buffer.alloc(64 * 1024 * 1024, ' ') }).finished();
  t.is(repeated.failure, undefined);
  // That all of it has left may be known only after the answer.
  t.deepEqual(
    repeated.order.filter((step) => step !== 'sent'),
    ['response', 'data', 'end'],
  );
  t.is(seen.size, 2);
});

/** More than the system keeps between the two. */
const LARGE = Buffer.alloc(64 * 1024 * 1024, ' ');

/** A server that answers each request by its path as soon as its head is there, and reads no more. */
async function listenEarly(t: Parameters<typeof closeAfter>[0], heads: Readonly<Record<string, string>>) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', (head) => {
      const path = head.toString('latin1').split(' ')[1] ?? '';
      socket.pause();
      socket.write(`HTTP/1.1 ${heads[path]}\r\nContent-Length: 0\r\n\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = createClient();
  closeAfter(t, client, server);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { client, sockets, url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`) };
}

for (const [what, head] of [
  ['refused', '413 Payload Too Large'],
  ['answered', '200 OK'],
  ['sent elsewhere', '307 Temporary Redirect\r\nLocation: /end'],
] as const) {
  test(`of a request that was ${what} before it had left, nothing is kept for a server that does not read it`, async (t) => {
    const { client, url } = await listenEarly(t, { '/': head, '/end': '400 Bad Request' });
    const call = await new RecordedCall(client, url, { body: LARGE }).finished();
    t.is(call.failure, undefined);
    const { sockets } = client.agents.agentFor(url);
    await waitFor(() => Object.keys(sockets).length === 0);
    t.true(call.hasEnded);
  });
}

test('a message that was accepted before it had left goes on to its end', async (t) => {
  const { client, sockets, url } = await listenEarly(t, { '/': '202 Accepted' });
  const call = new RecordedCall(client, url, { body: LARGE });
  await waitFor(() => call.head !== undefined);
  const [socket] = sockets;
  socket?.resume();
  await call.finished();
  await waitFor(() => (socket?.bytesRead ?? 0) > LARGE.length);
  t.is(call.failure, undefined);
});

test('a new connection that is reset is not tried again', async (t) => {
  const server = await listen((_, response) => void response.socket?.resetAndDestroy());
  const client = createClient();
  closeAfter(t, client, server);
  await new RecordedCall(client, server.url, { isRepeatable: true }).finished();
  t.is(server.received.length, 1);
});
