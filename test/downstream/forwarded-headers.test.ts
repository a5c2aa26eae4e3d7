import test from 'ava';
import { startHttpHarness } from '../support/http-harness.ts';
import { call, openInitializedSse, openStreamable } from '../support/legacy-clients.ts';

const NAMED = ['x-request-id', 'authorization'];
const SENT = { 'X-Request-Id': 'r-1', 'X-Other': 'secret', Authorization: 'Bearer secret' };

test('only the headers that were named go along with a call, credentials never', async (t) => {
  const session = await openStreamable(await startHttpHarness(t, { forwardHeaders: NAMED }));
  const pending = session.post(call(1), SENT);
  const request = await session.connection.next('tools/call');
  const { connection } = session;
  t.deepEqual(connection.calls[connection.received.indexOf(request)]?.lane.headers, { 'x-request-id': 'r-1' });
  connection.answer(request);
  await pending;
});

test('without --forward-header nothing goes along', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const pending = session.post(call(1), SENT);
  const request = await session.connection.next('tools/call');
  const { connection } = session;
  t.is(connection.calls[connection.received.indexOf(request)]?.lane.headers, undefined);
  connection.answer(request);
  await pending;
});

test('a call over HTTP+SSE has nothing to forward when the stream was opened without such headers', async (t) => {
  const session = await openInitializedSse(await startHttpHarness(t, { forwardHeaders: NAMED }));
  await session.post(call(1));
  const request = await session.connection.next('tools/call');
  const { connection } = session;
  t.is(connection.calls[connection.received.indexOf(request)]?.lane.headers, undefined);
});
