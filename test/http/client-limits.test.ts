import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import test from 'ava';
import { NO_TIMEOUTS } from '../../src/http/client/call-limits.ts';
import { listen } from '../fixtures/http-servers/listen.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

test('a server that cannot be connected to in time fails with the connect phase', async (t) => {
  // TLS never answers the ClientHello: connecting includes the handshake.
  const silent = createServer((socket) => void socket.on('error', () => undefined));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const client = createClient();
  closeAfter(t, client, silent);
  const url = new URL(`https://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`);
  const { failure } = await new RecordedCall(client, url, { timeouts: { ...NO_TIMEOUTS, connectMs: 50 } }).finished();
  t.is(failure?.code, 'ERR_UPSTREAM_TIMEOUT');
  t.deepEqual(failure?.data, { phase: 'connect', timeoutMs: 50 });
});

test('a server that does not begin to answer in time fails with the first-byte phase', async (t) => {
  const server = await listen(() => {});
  const clock = new FakeClock();
  const client = createClient({ clock });
  closeAfter(t, client, server);
  const call = new RecordedCall(client, server.url, { timeouts: { ...NO_TIMEOUTS, connectMs: 5000, firstByteMs: 50 } });
  await waitFor(() => call.order.includes('sent'));
  clock.advance(49);
  t.is(call.failure, undefined);
  clock.advance(1);
  t.deepEqual(call.failure?.data, { phase: 'first-byte', timeoutMs: 50 });
  t.deepEqual(call.order, ['sent', 'error']);
  await waitFor(() => server.open.size === 0, { message: 'the connection to be closed' });
});

test('an answer that falls silent fails with the idle phase, one that keeps coming does not', async (t) => {
  let body: ServerResponse | undefined;
  const server = await listen((_, response) => {
    body = response;
    response.writeHead(200).write('.');
  });
  const clock = new FakeClock();
  const client = createClient({ clock });
  closeAfter(t, client, server);
  const call = new RecordedCall(client, server.url, { timeouts: { ...NO_TIMEOUTS, idleMs: 150 } });
  for (let length = 1; length < 5; length += 1) {
    await waitFor(() => call.body.length === length);
    clock.advance(149);
    body?.write('.');
  }
  await waitFor(() => call.body.length === 5);
  t.is(call.failure, undefined);
  clock.advance(150);
  t.deepEqual(call.failure?.data, { phase: 'idle', timeoutMs: 150 });
  t.is(clock.pendingTimers, 0);
});

test('silence while we ourselves do not read is not the server’s', async (t) => {
  const server = await listen((_, response) => void response.writeHead(200).end('a'));
  const clock = new FakeClock();
  const client = createClient({ clock });
  closeAfter(t, client, server);
  const call = new RecordedCall(client, server.url, { timeouts: { ...NO_TIMEOUTS, idleMs: 50 } });
  call.call.pause();
  await waitFor(() => call.head !== undefined);
  clock.advance(1000);
  t.deepEqual(call.order, ['sent', 'response']);
  call.call.resume();
  await call.finished();
  t.is(call.body, 'a');
  t.is(clock.pendingTimers, 0);
});

test('a whole call has a limit of its own, however talkative', async (t) => {
  const server = await listen((_, response) => {
    response.writeHead(200).write('a');
    const timer = setInterval(() => response.write('.'), 10);
    response.on('close', () => clearInterval(timer));
  });
  const client = createClient();
  closeAfter(t, client, server);
  const { failure } = await new RecordedCall(client, server.url, {
    timeouts: { ...NO_TIMEOUTS, callMs: 100 },
  }).finished();
  t.deepEqual(failure?.data, { phase: 'call', timeoutMs: 100 });
});

test('an aborted call says nothing more and frees its connection', async (t) => {
  const server = await listen((_, response) => void response.writeHead(200).write('a'));
  const client = createClient();
  closeAfter(t, client, server);
  const call = new RecordedCall(client, server.url);
  await waitFor(() => call.body === 'a');
  call.call.abort();
  call.call.abort();
  await waitFor(() => server.open.size === 0);
  t.deepEqual(call.order, ['sent', 'response', 'data']);
});
