import { constants } from 'node:http2';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { BridgeError, SHUTTING_DOWN } from '../../../src/errors.ts';
import { STALL_MS } from '../../../src/http/reading-watch.ts';
import { call, initialize } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import { modern } from '../stdio-endpoint.ts';
import { openGrpcBridge } from './grpc-bridge.ts';
import { lineOf, openConnection, SESSION_HEADERS } from './raw-call.ts';

const CHECK_MS = 5000;

test('what belongs to a call names it, as text, and other messages name none', async (t) => {
  const { server, open } = await openGrpcBridge(t);
  const client = open();
  client.send(initialize());
  t.like(await client.nextLine(), { related_request_id: '' });
  client.send(call(7, 'work', { progressToken: 'p' }));
  const request = await server.latest.next('tools/call');
  server.latest.notify('notifications/progress', { progressToken: 'p', progress: 1 });
  server.latest.ask('q', 'sampling/createMessage');
  server.latest.notify('notifications/tools/list_changed');
  server.latest.answer(request, { done: true });
  const lines = [await client.nextLine(), await client.nextLine(), await client.nextLine(), await client.nextLine()];
  t.deepEqual(
    lines.map(({ line, related_request_id: related }) => [JSON.parse(line).method ?? 'answer', related]),
    [
      ['notifications/progress', '7'],
      ['sampling/createMessage', '7'],
      ['notifications/tools/list_changed', ''],
      ['answer', ''],
    ],
  );
});

test('a client that has ended its half still gets what it has asked for, and then status 0', async (t) => {
  const { server, sessions, open } = await openGrpcBridge(t);
  const client = open();
  client.send(initialize());
  await client.next();
  client.send(call(1));
  client.stream.end();
  const request = await server.latest.next('tools/call');
  server.latest.answer(request, { done: true });
  t.like(await client.nextMessage(), { id: 1, result: { done: true } });
  t.is((await client.ended).code, status.OK);
  await waitFor(() => sessions.size === 0);
});

test('a client that cancels its stream has left: its calls are withdrawn and its session ends', async (t) => {
  const { server, sessions, open } = await openGrpcBridge(t);
  const client = open();
  client.send(initialize());
  await client.next();
  client.send(call(1));
  await server.latest.next('tools/call');
  client.stream.cancel();
  await waitFor(() => sessions.size === 0);
  await waitFor(() => server.latest.closedFor !== undefined);
  t.regex(server.latest.closedFor?.message ?? '', /ended its stream/);
});

test('a deadline ends the stream with status 4', async (t) => {
  const { clock, server, sessions, open } = await openGrpcBridge(t);
  const client = open({ deadlineMs: 20_000 });
  client.send(initialize());
  await client.next();
  client.send(call(1));
  await server.latest.next('tools/call');
  clock.advance(19_000);
  t.is(sessions.size, 1);
  clock.advance(1100);
  t.is((await client.ended).code, status.DEADLINE_EXCEEDED);
  await waitFor(() => sessions.size === 0);
});

test('both eras are spoken on one stream, and one space of ids is kept', async (t) => {
  const { server, open } = await openGrpcBridge(t);
  const client = open();
  client.send(initialize());
  await client.next();
  client.send({ jsonrpc: '2.0', ...modern(1, 'tools/list') });
  await waitFor(() => server.connections.length === 2);
  const request = await server.latest.next('tools/list');
  client.send(call(1));
  t.like(await client.nextMessage(), { id: 1, error: { code: -32600 } });
  server.latest.answer(request, { tools: [] });
  t.like(await client.nextMessage(), { id: 1, result: { tools: [] } });
});

test('a line that is no message is answered or skipped, and the stream goes on', async (t) => {
  const { open } = await openGrpcBridge(t);
  const client = open();
  client.send('not JSON');
  client.send('');
  client.send('{"jsonrpc":"2.0","id":5}');
  t.like(await client.nextMessage(), { id: 5, error: { code: -32600 } });
  client.send(initialize());
  t.like(await client.nextMessage(), { id: 0, result: { serverInfo: { name: 'fake' } } });
});

test('a message over the limit ends the stream with status 8, also where only the line is too long', async (t) => {
  const { server, open } = await openGrpcBridge(t, { maxMessageBytes: 8192 });
  for (const size of [1_000_000, 8300]) {
    const client = open();
    client.send(initialize());
    await client.next();
    client.send(call(1));
    await server.latest.next('tools/call');
    client.send('x'.repeat(size));
    const { code, details } = await client.ended;
    t.is(code, status.RESOURCE_EXHAUSTED);
    t.regex(details, /larger than the 8192 bytes allowed.*--max-message-bytes/);
    await waitFor(() => server.latest.closedFor !== undefined);
  }
});

test('streams are limited, for all callers and for each', async (t) => {
  const { open, sessions } = await openGrpcBridge(t, {
    maxSessions: 3,
    maxCallerSessions: 2,
    principalOf: ({ headers }) => `${headers['x-name']}`,
  });
  const alice = { metadata: { 'x-name': 'alice' } };
  for (const client of [open(alice), open(alice)]) {
    client.send(initialize());
    await client.next();
  }
  const third = await open(alice).ended;
  t.is(third.code, status.RESOURCE_EXHAUSTED);
  t.regex(third.details, /This caller has 2 streams.*--max-caller-sessions/);
  const bob = open({ metadata: { 'x-name': 'bob' } });
  bob.send(initialize());
  await bob.next();
  const fourth = await open({ metadata: { 'x-name': 'carol' } }).ended;
  t.is(fourth.code, status.RESOURCE_EXHAUSTED);
  t.regex(fourth.details, /All 3 streams are taken.*--max-sessions/);
  bob.stream.end();
  await bob.ended;
  await waitFor(() => sessions.size === 2);
  const carol = open({ metadata: { 'x-name': 'carol' } });
  carol.send(initialize());
  t.like(await carol.nextMessage(), { id: 0 });
});

test('open calls are answered before the stream ends with status 14, when the server is gone or the bridge ends', async (t) => {
  const gone = await openGrpcBridge(t);
  const client = gone.open();
  client.send(initialize());
  await client.next();
  client.send(call(1));
  await gone.server.latest.next('tools/call');
  gone.server.latest.die(new BridgeError('ERR_UPSTREAM_EXITED', 'The server has exited.'));
  t.like(await client.nextMessage(), { id: 1, error: { code: -32603 } });
  t.like(await client.ended, { code: status.UNAVAILABLE, details: 'The server has exited.' });

  const ending = await openGrpcBridge(t);
  const other = ending.open();
  other.send(initialize());
  await other.next();
  other.send(call(1));
  await ending.server.latest.next('tools/call');
  await ending.served.drain(0);
  t.is((await ending.open().ended).code, status.UNAVAILABLE, 'no new stream is served');
  void ending.served.close(SHUTTING_DOWN);
  t.like(await other.nextMessage(), { id: 1, error: { code: -32000 } });
  t.like(await other.ended, { code: status.UNAVAILABLE });
});

test('a client that reads nothing for half a minute is reset, and its server is let go', async (t) => {
  const { clock, port, server, sessions } = await openGrpcBridge(t);
  const stream = openConnection(t, port).request(SESSION_HEADERS);
  stream.on('error', () => undefined);
  stream.write(lineOf(initialize()));
  await waitFor(() => sessions.size === 1 && server.connections.length === 1);
  stream.write(lineOf(call(1)));
  const request = await server.latest.next('tools/call');
  server.latest.answer(request, { text: 'x'.repeat(4 * 1024 * 1024) });
  for (let waitedMs = 0; waitedMs <= STALL_MS + CHECK_MS; waitedMs += CHECK_MS) {
    clock.advance(CHECK_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await waitFor(() => sessions.size === 0);
  await waitFor(() => stream.closed);
  t.is(stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
});
