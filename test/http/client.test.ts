import { type AddressInfo, createServer } from 'node:net';
import test from 'ava';
import { answerJson, listen } from '../fixtures/http-servers/listen.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

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

test('a compressed answer nobody asked for is refused clearly', async (t) => {
  const server = await listen((_, response) => void response.writeHead(200, { 'Content-Encoding': 'gzip' }).end('x'));
  const client = createClient();
  closeAfter(t, client, server);
  t.regex((await new RecordedCall(client, server.url).finished()).failure?.message ?? '', /compressed \(gzip\)/);
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

test('a new connection that is reset is not tried again', async (t) => {
  const server = await listen((_, response) => void response.socket?.resetAndDestroy());
  const client = createClient();
  closeAfter(t, client, server);
  await new RecordedCall(client, server.url, { isRepeatable: true }).finished();
  t.is(server.received.length, 1);
});
