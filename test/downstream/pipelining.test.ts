import test from 'ava';
import { STALL_MS } from '../../src/http/reading-watch.ts';
import type { FakeConnection } from '../support/fake-server.ts';
import { startHttpHarness } from '../support/http-harness.ts';
import { POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { readResponses } from '../support/read-responses.ts';
import { waitFor } from '../support/wait-for.ts';
import { headersOf, modernCall } from './streamable-stateless/modern-posts.ts';

function postCall(socket: RawSocket, id: number): void {
  const message = modernCall(id);
  socket.request('POST', '/mcp', headersOf(message) as Record<string, string>, JSON.stringify(message));
}

test('streams asked for behind another one on the same connection end with it', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = (await RawSocket.connect(harness.port)).read();
  for (let count = 0; count < 3; count += 1) socket.request('GET', '/sse', { Accept: 'text/event-stream' });
  await waitFor(() => harness.sessions.size === 3, { message: 'three sessions' });
  socket.destroy();
  await waitFor(() => harness.sessions.size === 0, { message: 'the end of all sessions' });
  t.true(harness.server.connections.every(({ closedFor }) => closedFor !== undefined));
});

test('an answer behind a call that takes long is not lost: nobody could read it yet', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = (await RawSocket.connect(harness.port)).read();
  t.teardown(() => socket.destroy());
  for (const id of [1, 2]) postCall(socket, id);
  await waitFor(() => harness.modernCalls.size === 2, { message: 'two calls' });
  const [first, second] = harness.server.connections as [FakeConnection, FakeConnection];
  second.answer(await second.next('tools/call'), {});
  await waitFor(() => harness.modernCalls.size === 1, { message: 'the second to be answered' });
  await harness.clock.advanceInSteps(3 * STALL_MS, 1000);
  first.answer(await first.next('tools/call'), {});
  t.regex(await socket.until(/"id":2/), /"id":1.*"id":2/s);
});

test('a call behind another one on the same connection is withdrawn when its client leaves', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = (await RawSocket.connect(harness.port)).read();
  for (const id of [1, 2]) postCall(socket, id);
  await waitFor(() => harness.modernCalls.size === 2, { message: 'two calls' });
  socket.destroy();
  await waitFor(() => harness.modernCalls.size === 0, { message: 'the end of both calls' });
  t.pass();
});

const EXPECTING = { ...POST_HEADERS, Expect: '100-continue' };

test('an answer that waits behind another one stays whole though its client wished to be asked for the body', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = (await RawSocket.connect(harness.port)).read();
  t.teardown(() => socket.destroy());
  postCall(socket, 1);
  socket.request('POST', '/mcp', EXPECTING, '{');
  await waitFor(() => harness.modernCalls.size === 1, { message: 'the first call' });
  const { latest } = harness.server;
  latest.answer(await latest.next('tools/call'), {});
  await socket.until(/ERR_WIRE_PARSE.*\}$/s);
  const { complete, rest } = readResponses(socket.received, () => false);
  t.is(rest, '');
  t.regex(complete[1]?.body ?? '', /^\{.*ERR_WIRE_PARSE.*\}$/);
});

test('a client is asked for the body of a call once what it had asked for before is answered', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = (await RawSocket.connect(harness.port)).read();
  t.teardown(() => socket.destroy());
  postCall(socket, 1);
  const message = modernCall(2);
  const body = JSON.stringify(message);
  const headers = { ...(headersOf(message) as Record<string, string>), ...EXPECTING };
  socket.request('POST', '/mcp', { ...headers, 'Content-Length': String(body.length) });
  await waitFor(() => harness.modernCalls.size === 1, { message: 'the first call' });
  const first = harness.server.latest;
  first.answer(await first.next('tools/call'), {});
  await socket.until(/"id":1.*100 Continue\r\n\r\n$/s);
  socket.write(body);
  await waitFor(() => harness.server.latest !== first, { message: 'the second call' });
  const second = harness.server.latest;
  second.answer(await second.next('tools/call'), {});
  await socket.until(/"id":2/);
  t.is(readResponses(socket.received, () => false).complete.length, 2);
});
